import { Command, CommanderError } from "commander";
import { UsageError } from "../errors.ts";
import { releaseOf } from "../root.ts";
import { createOutput } from "./report/output.ts";
import { exitCodeOf } from "./session/exit.ts";

/** Every file in commands/ has one. */
interface Definition {
  define(command: Command): void;
  /** What is typed after `usage-etl`, and what that does. */
  readonly examples: readonly (readonly [line: string, does: string])[];
}

const JSON_OPTION = ["--json", "print data as JSON on stdout"] as const;
const VERBOSE_OPTION = ["--verbose", "show the whole request of an error"] as const;

/** Where each command is defined. Only the named one is loaded: all take most of a second. */
const DEFINITIONS = {
  demo: () => import("./commands/demo/demo.ts"),
  standin: () => import("./commands/standin.ts"),
  init: () => import("./commands/init.ts"),
  migrate: () => import("./commands/migrate.ts"),
  serve: () => import("./commands/serve.ts"),
  sync: () => import("./commands/load/sync.ts"),
  backfill: () => import("./commands/load/backfill.ts"),
  plan: () => import("./commands/load/plan.ts"),
  "data-start": () => import("./commands/data-start.ts"),
  workspace: () => import("./commands/workspace.ts"),
  source: () => import("./commands/source.ts"),
  prune: () => import("./commands/prune.ts"),
  reconcile: () => import("./commands/proof/reconcile.ts"),
  totals: () => import("./commands/proof/totals.ts"),
  close: () => import("./commands/proof/close.ts"),
  probe: () => import("./commands/proof/probe.ts"),
  bill: () => import("./commands/files/bill.ts"),
  export: () => import("./commands/files/export.ts"),
  files: () => import("./commands/files/files.ts"),
  mcp: () => import("./commands/mcp.ts"),
  prices: () => import("./commands/files/prices.ts"),
  owners: () => import("./commands/files/owners.ts"),
  status: () => import("./commands/status.ts"),
  coverage: () => import("./commands/load/coverage.ts"),
  alerts: () => import("./commands/alerts.ts"),
  runs: () => import("./commands/load/runs.ts"),
  doctor: () => import("./commands/doctor.ts"),
  config: () => import("./commands/config.ts"),
  platform: () => import("./commands/platform.ts"),
} satisfies Record<string, () => Promise<Definition>>;
type CommandName = keyof typeof DEFINITIONS;

const ABOUT: Readonly<Record<string, Readonly<Partial<Record<CommandName, string>>>>> = {
  "Set up": {
    demo: "run everything on this machine: stand-in, database, queue, sync, reconciliation",
    standin: "run a local platform with seeded usage, control plane, runs and A2A",
    init: "ask for the platform, Postgres and Redis, try each, and write the settings to a file",
    migrate: "update schema and views; several may run at once",
    serve: "run the service: scheduled syncs and proofs, backfills, health, metrics and pages",
  },
  Load: {
    sync: "fetch everything that is missing or not final",
    backfill: "load a range, by default through the queue until it is done",
    plan: "show the windows and requests of a range without sending any",
    "data-start": "show the first day that is loaded, or move it later; USAGE_DATA_START moves it earlier",
    workspace: "list the known workspaces, add one, or forget one",
    source: "list the stored sources, or forget one",
    prune:
      "delete history older than USAGE_KEEP_HISTORY, hours older than USAGE_HOURLY_KEEP, and user names that USAGE_USER_EMAIL does not allow",
  },
  Prove: {
    reconcile: "compare final figures with the platform's CSV export",
    totals:
      "compare final days with the platform's totals of weeks, months and years, and dimensions with their workspace",
    close: "close a month such as 2026-03: store its totals once every day is final and reconciled",
    probe: "send a few known traces and check that exactly those are billed; they cost money",
  },
  Read: {
    bill: "show the bill of a month by price, and which parts of it are not known",
    export: "write the rows of a reporting view to a file, in constant memory",
    files: "write Parquet files for a warehouse, or check them",
    mcp: "answer questions of an AI client about usage, cost, bill and proof (Model Context Protocol, read-only)",
  },
  "Prices and owners": {
    prices: "manage the unit prices that costs are estimated from",
    owners: "manage who pays: rules that give usage to owners and cost centres",
  },
  Operate: {
    status: "show how far each source is loaded, and its problems",
    coverage: "show which days are loaded and final, by dimension and stride",
    alerts: "show routes and open incidents, and send a test message",
    runs: "show recent syncs, backfills, comparisons and files",
    doctor: "check Postgres, Redis, the platform, the key, schedules, workers, clock and disk",
    config: "show the settings in use; secrets are hidden",
  },
  "Agents and deployments": {
    platform: "manage templates and deployments, run assistants, send agent-to-agent messages",
  },
};

/** Runs the command line and sets the exit code. */
export async function main(): Promise<void> {
  const json = process.argv.includes("--json");
  const output = createOutput({ json, verbose: process.argv.includes("--verbose") });
  const program = new Command("usage-etl")
    .description("Load the billable usage of an agent platform into Postgres, and prove it.")
    .option(...JSON_OPTION)
    .option(...VERBOSE_OPTION)
    .version(releaseOf(), "--version", "print the version")
    .exitOverride()
    // Printed below, as every other error is.
    .configureOutput({ outputError: () => {}, ...(json ? { writeErr: () => {} } : {}) });
  const [asks, named] = namedCommands();
  try {
    refuseLogins(process.argv.slice(2));
    for (const [group, commands] of Object.entries(ABOUT)) {
      program.commandsGroup(`${group}:`);
      for (const [name, about] of Object.entries(commands)) {
        const command = program.command(name).description(about);
        if (name !== named) continue;
        const { define, examples }: Definition = await DEFINITIONS[name as CommandName]();
        define(command);
        command.addHelpText("after", describeExamples(examples));
      }
    }
    program.commandsGroup("Other:").helpCommand("help [command]", "show the options of a command");
    program
      .command("version")
      .description("print the version")
      .action(() => output.data({ version: releaseOf() }, ({ version }) => version));
    const isCompletion = asks === "completion" || asks === "complete";
    if (isCompletion) await addCompletion(program);
    else program.command("completion").description("print a completion script for bash, zsh or fish");
    for (const command of allUnder(program)) command.option(...JSON_OPTION).option(...VERBOSE_OPTION);
    // Arguments are not known before a command is loaded, so the list of commands shows none.
    program.configureHelp({ subcommandTerm: (command) => command.name() });
    await program.parseAsync();
  } catch (error) {
    process.exitCode = exitCodeOf(error);
    // Help and the version are no errors. Without a subcommand help was printed as the answer.
    const isHelp =
      error instanceof CommanderError && (error.exitCode === 0 || error.code === "commander.help");
    if (!isHelp || (json && process.exitCode !== 0)) output.error(error);
  }
}

/** Any part of a URL may be of its password. A message to an agent may begin with a web address. */
const WITH_LOGIN = /^(?:-*[\w-]+=)*(?:https?:\/\/\S*@|(?!https?:)[a-z][a-z\d+.-]*:\/\/.*@|s3:.*@)/is;

/** Errors of wrong arguments repeat them. */
function refuseLogins(args: readonly string[]): void {
  if (!args.some((arg) => WITH_LOGIN.test(arg.trim()))) return;
  throw new UsageError({
    code: "argument_has_login",
    message: "An argument has a login in an address, which the list of processes shows.",
    next: "Set a variable instead: DATABASE_URL, REDIS_URL, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for s3://bucket/prefix.",
  });
}

function describeExamples(examples: Definition["examples"]): string {
  const lines = examples.map(([line, does]) => `  usage-etl ${line}\n      ${does}`);
  return `\nExamples:\n${lines.join("\n")}`;
}

/**
 * The first word, and the command that is run, completed or explained. No option before a command takes a
 * value.
 */
function namedCommands(): [asks: string | undefined, named: string | undefined] {
  const [first, second] = process.argv.slice(2).filter((word) => !word.startsWith("-"));
  return [first, first === "help" || first === "complete" ? second : first];
}

/**
 * `completion SHELL` prints a script that asks `complete -- WORDS` at each Tab. Only that command is loaded.
 */
async function addCompletion(program: Command): Promise<void> {
  const { default: tab } = await import("@bomb.sh/tab/commander");
  tab(program.name("usage-etl"), { completionCommandName: "completion" });
}

function allUnder(command: Command): Command[] {
  return command.commands.flatMap((one) => [one, ...allUnder(one)]);
}
