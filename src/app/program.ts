import { Command, CommanderError } from "commander";
import { UsageError } from "../core/base/errors.ts";
import { loadOptional } from "../core/base/optional.ts";
import { releaseOf } from "../core/base/root.ts";
import {
  COMMAND_GROUPS,
  type CommandDefinition,
  type CommandEntry,
  type Feature,
} from "../features/feature.ts";
import { FEATURES } from "../features.ts";
import { exitCodeOf } from "../terminal/exit.ts";
import { createOutput } from "../terminal/output.ts";

const JSON_OPTION = ["--json", "print data as JSON on stdout"] as const;
const VERBOSE_OPTION = ["--verbose", "show the whole request of an error"] as const;

/** The core's own commands. Only the named command is loaded: loading all takes most of a second. */
const CORE: Feature = {
  commands: {
    demo: {
      group: "Set up",
      about: "run everything on this machine: stand-in, database, queue, sync, reconciliation",
      load: () => import("./demo/demo.ts"),
    },
    sync: {
      group: "Load",
      about: "fetch everything that is missing or not final",
      load: () => import("./commands/sync.ts"),
    },
    init: {
      group: "Set up",
      about: "ask for the platform, Postgres and Redis, try each, and write the settings to a file",
      load: () => import("./commands/init.ts"),
    },
    migrate: {
      group: "Set up",
      about: "update schema and views; several may run at once",
      load: () => import("./commands/migrate.ts"),
    },
    serve: {
      group: "Set up",
      about: "run the service: scheduled syncs and proofs, backfills, health, metrics and pages",
      load: () => import("./commands/serve.ts"),
    },
    prune: {
      group: "Load",
      about:
        "delete history older than USAGE_KEEP_HISTORY, hours older than USAGE_HOURLY_KEEP, and user names that USAGE_USER_EMAIL does not allow",
      load: () => import("./commands/prune.ts"),
    },
    reconcile: {
      group: "Prove",
      about: "compare final figures with the platform's CSV export",
      load: () => import("./commands/reconcile.ts"),
    },
    doctor: {
      group: "Operate",
      about: "check Postgres, Redis, the platform, the key, schedules, workers, clock and disk",
      load: () => import("./commands/doctor.ts"),
    },
    config: {
      group: "Operate",
      about: "show the settings in use; secrets are hidden",
      load: () => import("./commands/config.ts"),
    },
  },
};

/** Commands that come first in their group in the list of commands. */
const FIRST = ["demo", "init", "sync", "backfill", "reconcile", "bill", "prices", "status"];

function listCommands(): [name: string, entry: CommandEntry][] {
  const all = [CORE, ...FEATURES].flatMap(({ commands }) => Object.entries(commands ?? {}));
  const placeOf = (name: string) => (FIRST.includes(name) ? 0 : 1);
  return all.sort(
    ([one, { group: a }], [other, { group: b }]) =>
      COMMAND_GROUPS.indexOf(a) - COMMAND_GROUPS.indexOf(b) || placeOf(one) - placeOf(other),
  );
}

export async function main(): Promise<void> {
  const json = process.argv.includes("--json");
  const output = createOutput({ json, verbose: process.argv.includes("--verbose") });
  const program = new Command("usage-etl")
    .description("Load the billable usage of an agent platform into Postgres, and prove it.")
    .option(...JSON_OPTION)
    .option(...VERBOSE_OPTION)
    .version(releaseOf(), "--version", "print the version")
    .exitOverride()
    .configureOutput({ outputError: () => {}, ...(json ? { writeErr: () => {} } : {}) });
  const [requests, named] = namedCommands();
  try {
    refuseLogins(process.argv.slice(2));
    for (const [name, { group, about, load }] of listCommands()) {
      const command = program.commandsGroup(`${group}:`).command(name).description(about);
      if (name !== named) continue;
      const { define, examples } = await loadOptional(load);
      define(command, FEATURES);
      command.addHelpText("after", describeExamples(examples));
    }
    program.commandsGroup("Other:").helpCommand("help [command]", "show the options of a command");
    program
      .command("version")
      .description("print the version")
      .action(() => output.data({ version: releaseOf() }, ({ version }) => version));
    const isCompletion = requests === "completion" || requests === "complete";
    if (isCompletion) await addCompletion(program);
    else program.command("completion").description("print a completion script for bash, zsh or fish");
    for (const command of allUnder(program)) command.option(...JSON_OPTION).option(...VERBOSE_OPTION);
    // Commander knows the arguments of loaded commands only, so the list of commands shows no arguments.
    program.configureHelp({ subcommandTerm: (command) => command.name() });
    await program.parseAsync();
  } catch (error) {
    process.exitCode = exitCodeOf(error);
    // Commander also throws after it printed help or the version.
    const isHelp =
      error instanceof CommanderError && (error.exitCode === 0 || error.code === "commander.help");
    if (!isHelp || (json && process.exitCode !== 0)) output.error(error);
  }
}

/** A password may contain any character of a URL. A message to an agent may begin with a web address. */
const WITH_LOGIN = /^(?:-*[\w-]+=)*(?:https?:\/\/\S*@|(?!https?:)[a-z][a-z\d+.-]*:\/\/.*@|s3:.*@)/is;

/** Called first, because other errors repeat wrong arguments. */
function refuseLogins(args: readonly string[]): void {
  if (!args.some((arg) => WITH_LOGIN.test(arg.trim()))) return;
  throw new UsageError({
    code: "argument_has_login",
    message:
      "The address in an argument has a login, and anybody on this host can see it in the list of processes.",
    next: "Set the login in a variable instead: DATABASE_URL, REDIS_URL, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for s3://bucket/prefix.",
  });
}

function describeExamples(examples: CommandDefinition["examples"]): string {
  const lines = examples.map(([line, does]) => `  usage-etl ${line}\n      ${does}`);
  return `\nExamples:\n${lines.join("\n")}`;
}

/** Returns the first word, and the command to run, complete or explain. No option before a command takes a value. */
function namedCommands(): [requests: string | undefined, named: string | undefined] {
  const [first, second] = process.argv.slice(2).filter((word) => !word.startsWith("-"));
  return [first, first === "help" || first === "complete" ? second : first];
}

/** `completion SHELL` prints a script that calls `complete -- WORDS` at each Tab. Only the named command is loaded. */
async function addCompletion(program: Command): Promise<void> {
  const { default: tab } = await import("@bomb.sh/tab/commander");
  tab(program.name("usage-etl"), { completionCommandName: "completion" });
}

function allUnder(command: Command): Command[] {
  return command.commands.flatMap((one) => [one, ...allUnder(one)]);
}
