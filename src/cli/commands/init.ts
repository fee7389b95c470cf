import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { type Command, InvalidArgumentError } from "commander";
import { systemClock } from "../../clock.ts";
import { readConfig } from "../../config/config.ts";
import { ENV_FILE, fitsEnvFile, withEnvFile } from "../../config/env-file.ts";
import { readRedis } from "../../config/redis.ts";
import { readSecretFile, readSetting, refuse } from "../../config/variables.ts";
import { EtlError, UsageError } from "../../errors.ts";
import { redisServerOf } from "../../redis-server.ts";
import { PROGRAM } from "../../typed.ts";
import { exitCodeOf, firstExit } from "../session/exit.ts";
import { inSession, type Session } from "../session/session.ts";
import { type Prompts, promptsFor } from "../setup/prompts.ts";
import { type Answers, askFor, checkAnswers, type Name, QUESTIONS, unanswered } from "../setup/questions.ts";
import { type Finding, tryPlatform, tryPostgres, tryRedis } from "../setup/tries.ts";
import { fileExists, writeSettings } from "../setup/write-settings.ts";

interface InitOptions {
  readonly baseUrl?: string;
  readonly apiKeyFile?: string;
  readonly databaseUrl?: string;
  readonly redisUrl?: string;
  readonly set: Readonly<Record<string, string>>;
  readonly file: string;
  readonly secrets?: string;
  readonly overwrite?: boolean;
}

export function define(command: Command): void {
  command
    .option("--base-url <url>", "billing host of the platform; default USAGE_BASE_URL")
    .option("--api-key-file <file>", "file with the API key, or - for stdin; default USAGE_API_KEY")
    .option(
      "--database-url <url>",
      "Postgres; default DATABASE_URL, which the list of processes does not show",
    )
    .option("--redis-url <url>", "Redis; default REDIS_URL. Without it commands need --inline")
    .option("--set <name=value>", "another setting; may be given several times", collect, {})
    .option("--file <file>", "file to write", ENV_FILE)
    .option("--secrets <folder>", "write each secret to a file in this folder")
    .option("--overwrite", "replace files that are there")
    .action(inSession(init, { alone: true }));
}

function collect(text: string, before: Readonly<Record<string, string>>): Record<string, string> {
  const at = text.indexOf("=");
  if (at > 0) return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
  throw new InvalidArgumentError("It is not of the form NAME=VALUE, such as USAGE_DATA_START=2026-01-05.");
}

interface Tried {
  readonly subject: string;
  readonly state: Finding["state"] | "fail";
  readonly finding: string;
}

interface Setup {
  readonly session: Session;
  readonly answers: Answers;
  /** What Enter keeps: the answer before, or what is set. */
  readonly kept: Answers;
  readonly set: Record<string, string>;
  /** Undefined without a terminal. */
  readonly prompts: Prompts | undefined;
  readonly tried: Tried[];
}

/** Tries everything before it writes anything. Without a terminal it asks nothing, and one failure ends it. */
async function init(session: Session, options: InitOptions): Promise<number> {
  const file = resolve(options.file);
  const overwrite = options.overwrite === true;
  if (!overwrite && existsSync(file)) throw fileExists(file);
  const setup = begin(session, options);
  const { answers, set, tried, prompts } = setup;
  if (prompts === undefined) requireAnswers(answers);

  const { signal, output } = session;
  const exits = [
    await attempt(setup, "platform", ["USAGE_BASE_URL", "USAGE_API_KEY"], () =>
      tryPlatform(platformOf(answers, set), { now: systemClock.now(), signal }),
    ),
    await attempt(setup, "postgres", ["DATABASE_URL"], () => tryPostgres(answers.DATABASE_URL ?? "")),
    await attempt(setup, "redis", ["REDIS_URL"], async () =>
      answers.REDIS_URL
        ? tryRedis(
            readRedis({ ...withEnvFile(process.env), ...set, REDIS_URL: answers.REDIS_URL }) ??
              redisServerOf({ url: answers.REDIS_URL }),
          )
        : [{ state: "warn", finding: "none is set: `sync --inline` works without, `serve` does not" }],
    ),
  ];
  const exit = firstExit(exits);
  const settings = Object.fromEntries(
    Object.entries<string>({ ...answers, ...set }).filter(([, value]) => value !== ""),
  );
  const written = exit === 0 ? writeSettings(settings, { file, secrets: options.secrets, overwrite }) : [];
  const named = options.file === ENV_FILE ? [] : [`export USAGE_ENV_FILE=${file}`];
  const next = exit === 0 ? [...named, `${PROGRAM} migrate`, `${PROGRAM} sync --inline`] : [];
  output.data({ tried, written, next }, () =>
    exit === 0
      ? [
          ...written.map((path) => `Wrote ${path} (mode 600). Next:`),
          ...next.map((line) => `  ${line}`),
        ].join("\n")
      : "Nothing was written.",
  );
  return exit;
}

function begin(session: Session, options: InitOptions): Setup {
  const { config, output, signal } = session;
  const isPerson = process.stdin.isTTY && process.stderr.isTTY && !output.json;
  const kept: Answers = {
    USAGE_BASE_URL: withEnvFile(process.env).USAGE_BASE_URL ?? "",
    USAGE_API_KEY: config.platform.apiKey?.reveal() ?? "",
    DATABASE_URL: config.databaseUrl?.reveal() ?? "",
    REDIS_URL: config.redisUrl?.reveal() ?? "",
  };
  const { baseUrl, apiKeyFile, databaseUrl, redisUrl } = options;
  const given: Partial<Record<Name, string | undefined>> = {
    USAGE_BASE_URL: baseUrl,
    USAGE_API_KEY: apiKeyFile && keyIn(apiKeyFile),
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
  };
  const flags = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  checkSet(options.set, { ...kept, ...flags });
  return {
    session,
    kept,
    answers: isPerson ? flags : { ...kept, ...flags },
    set: { ...options.set },
    prompts: isPerson ? promptsFor(signal) : undefined,
    tried: [],
  };
}

function keyIn(file: string): string {
  if (file === "-") return readFileSync(0, "utf8").trim();
  const problems: string[] = [];
  const key = readSecretFile(file, "--api-key-file", problems);
  refuse(problems);
  return key ?? "";
}

/** The other settings are read as every command will read them. */
function checkSet(set: Readonly<Record<string, string>>, answers: Answers): void {
  refuse(
    Object.entries(set).flatMap(([name, value]) => {
      if (name in QUESTIONS)
        return [`--set ${name} has an option of its own: ${QUESTIONS[name as Name].flag}`];
      return fitsEnvFile(value) ? [] : [`--set ${name} has a ' or a line end, which an env file cannot hold`];
    }),
  );
  readConfig({ ...set, USAGE_BASE_URL: answers.USAGE_BASE_URL, USAGE_API_KEY: answers.USAGE_API_KEY });
}

function requireAnswers(answers: Answers): void {
  const missing = unanswered(answers);
  if (missing.length === 0) return;
  throw new UsageError({
    code: "init_incomplete",
    message: `${missing.join(", ")} ${missing.length > 1 ? "are" : "is"} not given, and there is no terminal to ask on.`,
    next: `Give ${missing.map((name) => QUESTIONS[name].flag).join(", ")}, or set the variables.`,
  });
}

function platformOf(answers: Answers, set: Readonly<Record<string, string>>) {
  const { USAGE_BASE_URL: baseUrl = "", USAGE_API_KEY: apiKey = "" } = answers;
  const workspaceIds = readSetting(set, "USAGE_WORKSPACE_IDS");
  return { baseUrl, apiKey, workspaceIds, organizationId: set.USAGE_ORGANIZATION_ID };
}

/** Asks, tries and says how that went; on a terminal until it works. Returns the exit code. */
async function attempt(
  setup: Setup,
  subject: string,
  names: readonly Name[],
  work: () => Promise<readonly Finding[]>,
): Promise<number> {
  const { session, answers, kept, prompts, tried } = setup;
  const say = (one: Tried) => {
    tried.push(one);
    session.output.note(`${one.state}  ${subject}: ${one.finding}`);
  };
  for (;;) {
    for (const name of prompts === undefined ? [] : names) {
      answers[name] ??= await askFor(name, prompts as Prompts, kept[name]);
    }
    try {
      checkAnswers(answers, names);
      for (const finding of await work()) say({ subject, ...finding });
      return 0;
    } catch (error) {
      if (!(error instanceof EtlError) || session.signal.aborted) throw error;
      say({ subject, state: "fail", finding: `${error.message}\n      ${error.next} [${error.code}]` });
      if (prompts === undefined) return exitCodeOf(error);
      await askAgain(setup, names, error);
    }
  }
}

/** Takes back the answers that a failure may be about. */
async function askAgain({ answers, kept, set, prompts }: Setup, names: readonly Name[], error: EtlError) {
  if (error.code === "workspaces_unknown" && prompts !== undefined) {
    const text = "Ids of the workspaces, comma-separated (empty: correct the host)";
    const ids = await prompts.text(text, set.USAGE_WORKSPACE_IDS ?? "");
    if (ids !== "") {
      set.USAGE_WORKSPACE_IDS = ids;
      return;
    }
  }
  for (const name of names) {
    // A key that the platform did not refuse is kept: nobody types it twice for a host that was away.
    if (name === "USAGE_API_KEY" && error.code !== "unauthorized" && error.code !== "forbidden") continue;
    if (name !== "USAGE_API_KEY") kept[name] = answers[name] ?? "";
    delete answers[name];
  }
}
