import { existsSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { type Command, InvalidArgumentError } from "commander";
import { systemClock } from "../../core/base/clock.ts";
import { readConfig, readRedis } from "../../core/base/config.ts";
import { ENV_FILE, fitsEnvFile, toEnvFile, withEnvFile } from "../../core/base/env-file.ts";
import { EtlError, UsageError } from "../../core/base/errors.ts";
import { textOf } from "../../core/base/given-file.ts";
import { redisServerOf } from "../../core/base/redis-server.ts";
import { readSecretFile } from "../../core/base/secret.ts";
import { isRouteSetting, isSecret } from "../../core/base/settings.ts";
import { readSetting, readVariable, refuse } from "../../core/base/variables.ts";
import { exitCodeOf, firstExit } from "../../terminal/exit.ts";
import { linesOf } from "../../terminal/output.ts";
import { type Prompts, promptsFor } from "../../terminal/prompts.ts";
import { inSession, type Session } from "../../terminal/session.ts";
import { type Finding, tryPlatform, tryPostgres, tryRedis } from "../doctor/tries.ts";

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

export const examples = [
  ["init", "ask for each setting and try it"],
  [
    "init --api-key-file key.txt --secrets secrets --set USAGE_DATA_START=2026-01-01",
    "secrets go to files of their own",
  ],
] as const;

export function define(command: Command): void {
  command
    .option("--base-url <url>", "billing host of the platform; default USAGE_BASE_URL")
    .option("--api-key-file <file>", "file with the API key, or - for stdin; default USAGE_API_KEY")
    .option("--database-url <url>", "Postgres without a login; default DATABASE_URL")
    .option(
      "--redis-url <url>",
      "Redis without a login; default REDIS_URL. Without it commands need --inline",
    )
    .option("--set <name=value>", "another setting; may be given several times", collect, {})
    .option("--file <file>", "file to write", ENV_FILE)
    .option("--secrets <folder>", "write each secret to a file in this folder")
    .option("--overwrite", "replace existing files")
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
  readonly responses: Responses;
  readonly kept: Responses;
  readonly set: Record<string, string>;
  /** Undefined without a terminal. */
  readonly prompts: Prompts | undefined;
  readonly tried: Tried[];
}

/** Tries all servers before it writes. Without a terminal, the first failure ends the command. */
async function init(session: Session, options: InitOptions): Promise<number> {
  const file = resolve(options.file);
  const overwrite = options.overwrite === true;
  if (!overwrite && existsSync(file)) throw fileExists(file);
  const setup = begin(session, options);
  const { responses, set, tried, prompts } = setup;
  if (prompts === undefined) requireResponses(responses);

  const { signal, output } = session;
  const exits = [
    await attempt(setup, "platform", ["USAGE_BASE_URL", "USAGE_API_KEY"], () =>
      tryPlatform(platformOf(responses, set), { now: systemClock.now(), signal }),
    ),
    await attempt(setup, "postgres", ["DATABASE_URL"], () => tryPostgres(responses.DATABASE_URL ?? "")),
    await attempt(setup, "redis", ["REDIS_URL"], async () =>
      responses.REDIS_URL
        ? tryRedis(
            readRedis({ ...withEnvFile(process.env), ...set, REDIS_URL: responses.REDIS_URL }) ??
              redisServerOf({ url: responses.REDIS_URL }),
          )
        : [{ state: "warn", finding: "not set: `sync --inline` works without Redis, `serve` does not" }],
    ),
  ];
  const exit = firstExit(exits);
  const settings = Object.fromEntries(
    Object.entries<string>({ ...responses, ...set }).filter(([, value]) => value !== ""),
  );
  const written = exit === 0 ? writeSettings(settings, { file, secrets: options.secrets, overwrite }) : [];
  const named = options.file === ENV_FILE ? [] : [`export USAGE_ENV_FILE=${file}`];
  const next =
    exit === 0 ? [...named, ...["migrate", "sync --inline"].map((command) => `usage-etl ${command}`)] : [];
  output.data({ tried, written, next }, () =>
    linesOf(
      exit !== 0 && "Nothing was written.",
      written.map((path) => `Wrote ${path} (mode 600). Next:`),
      next.map((line) => `  ${line}`),
    ),
  );
  return exit;
}

function begin(session: Session, options: InitOptions): Setup {
  const { config, output, signal } = session;
  const isPerson = process.stdin.isTTY && process.stderr.isTTY && !output.json;
  const kept: Responses = {
    USAGE_BASE_URL: withEnvFile(process.env).USAGE_BASE_URL ?? "",
    USAGE_API_KEY: config.platform.apiKey?.reveal() ?? "",
    DATABASE_URL: config.databaseUrl?.reveal() ?? "",
    REDIS_URL: config.redisUrl?.reveal() ?? "",
  };
  const given: Partial<Record<Name, string | undefined>> = {
    USAGE_BASE_URL: options.baseUrl,
    USAGE_API_KEY: options.apiKeyFile && keyIn(options.apiKeyFile),
    DATABASE_URL: options.databaseUrl,
    REDIS_URL: options.redisUrl,
  };
  const flags = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  checkSet(options.set, { ...kept, ...flags });
  return {
    session,
    kept,
    responses: isPerson ? flags : { ...kept, ...flags },
    set: { ...options.set },
    prompts: isPerson ? promptsFor(signal) : undefined,
    tried: [],
  };
}

function keyIn(file: string): string {
  if (file === "-") return textOf(readFileSync(0))?.trim() ?? "";
  const problems: string[] = [];
  const key = readSecretFile(file, "--api-key-file", problems);
  refuse(problems);
  return key ?? "";
}

function checkSet(set: Readonly<Record<string, string>>, responses: Responses): void {
  refuse(
    Object.entries(set).flatMap(([name, value]) => {
      if (name in QUESTIONS)
        return [`--set ${name} has an option of its own: ${QUESTIONS[name as Name].flag}`];
      if (isSecret(name) || isRouteSetting(name))
        return [
          `--set ${name} is a secret, and anybody on this host can see it in the list of processes. Use --set ${name}_FILE=PATH instead`,
        ];
      return fitsEnvFile(value) ? [] : [`--set ${name} has a ' or a line end, which an env file cannot hold`];
    }),
  );
  readConfig({ ...set, USAGE_BASE_URL: responses.USAGE_BASE_URL, USAGE_API_KEY: responses.USAGE_API_KEY });
}

function requireResponses(responses: Responses): void {
  const names = Object.keys(QUESTIONS) as Name[];
  const missing = names.filter((name) => QUESTIONS[name].isOptional === undefined && !responses[name]);
  if (missing.length === 0) return;
  throw new UsageError({
    code: "init_incomplete",
    message: `${missing.join(", ")} ${missing.length > 1 ? "are" : "is"} missing, and there is no terminal for prompts.`,
    next: `Give ${missing.map((name) => QUESTIONS[name].flag).join(", ")}, or set the variables.`,
  });
}

function platformOf(responses: Responses, set: Readonly<Record<string, string>>) {
  const { USAGE_BASE_URL: baseUrl = "", USAGE_API_KEY: apiKey = "" } = responses;
  const workspaceIds = readSetting(set, "USAGE_WORKSPACE_IDS");
  return { baseUrl, apiKey, workspaceIds, organizationId: set.USAGE_ORGANIZATION_ID };
}

async function attempt(
  setup: Setup,
  subject: string,
  names: readonly Name[],
  work: () => Promise<readonly Finding[]>,
): Promise<number> {
  const { session, responses, kept, prompts, tried } = setup;
  const say = (one: Tried) => {
    tried.push(one);
    session.output.note(`${one.state}  ${subject}: ${one.finding}`);
  };
  for (;;) {
    for (const name of prompts === undefined ? [] : names) {
      while (responses[name] === undefined) {
        const response = await promptFor(name, prompts as Prompts, kept[name]);
        const problems = problemsOf(name, response);
        if (problems.length === 0) responses[name] = response;
        // Otherwise Enter would repeat the invalid response.
        else if (response === kept[name]) kept[name] = "";
        for (const problem of problems)
          say({ subject, state: "fail", finding: `${problem}. Type it again.` });
      }
    }
    try {
      refuse(names.flatMap((name) => problemsOf(name, responses[name] ?? "")));
      for (const finding of await work()) say({ subject, ...finding });
      return 0;
    } catch (error) {
      if (!(error instanceof EtlError) || session.signal.aborted) throw error;
      say({ subject, state: "fail", finding: `${error.message}\n      ${error.next} [${error.code}]` });
      if (prompts === undefined) return exitCodeOf(error);
      await requestAgain(setup, names, error);
    }
  }
}

async function requestAgain(
  { responses, kept, set, prompts }: Setup,
  names: readonly Name[],
  error: EtlError,
) {
  if (error.code === "workspaces_unknown" && prompts !== undefined) {
    const text = "Ids of the workspaces, comma-separated (empty: correct the host)";
    const ids = await prompts.text(text, set.USAGE_WORKSPACE_IDS ?? "");
    if (ids !== "") {
      set.USAGE_WORKSPACE_IDS = ids;
      return;
    }
  }
  for (const name of names) {
    // Only a refused key is requested again.
    if (name === "USAGE_API_KEY" && error.code !== "unauthorized" && error.code !== "forbidden") continue;
    if (name !== "USAGE_API_KEY") kept[name] = responses[name] ?? "";
    delete responses[name];
  }
}

type Name = "USAGE_BASE_URL" | "USAGE_API_KEY" | "DATABASE_URL" | "REDIS_URL";
type Responses = Partial<Record<Name, string>>;

interface Question {
  readonly text: string;
  readonly flag: string;
  readonly fallback?: string;
  readonly isHidden?: true;
  readonly isOptional?: true;
}

const QUESTIONS: Readonly<Record<Name, Question>> = {
  USAGE_BASE_URL: {
    text: "Billing host of the platform, https://HOST",
    flag: "--base-url",
    fallback: "https://api.smith.langchain.com",
  },
  USAGE_API_KEY: { text: "API key with organization:read", flag: "--api-key-file", isHidden: true },
  DATABASE_URL: {
    text: "Postgres",
    flag: "--database-url",
    fallback: "postgres://usage:usage@127.0.0.1:5432/usage",
  },
  REDIS_URL: {
    text: "Redis, such as redis://127.0.0.1:6379 (empty: none)",
    flag: "--redis-url",
    isOptional: true,
  },
};

function promptFor(name: Name, prompts: Prompts, kept: string | undefined): Promise<string> {
  const { text, fallback = "", isHidden } = QUESTIONS[name];
  return isHidden ? prompts.secret(text, kept ?? "") : prompts.text(text, kept || fallback);
}

function problemsOf(name: Name, value: string): string[] {
  if (value === "" && QUESTIONS[name].isOptional === undefined) return [`${name} is empty`];
  if (!fitsEnvFile(value)) return [`${name} has a ' or a line end, which an env file cannot hold`];
  const problems: string[] = [];
  readVariable({ [name]: value }, name, problems);
  return problems;
}

const HEAD = `# Settings of usage-etl, written by \`usage-etl init\`. docs/settings.md describes all of them.
# What the environment sets goes before this file. It may hold secrets: keep its mode 600.
`;

interface Target {
  readonly file: string;
  readonly secrets: string | undefined;
  readonly overwrite: boolean;
}

/** Mode 600. Returns the paths. Error: `env_file_exists`, unless `overwrite`. */
function writeSettings(settings: Readonly<Record<string, string>>, target: Target): string[] {
  const { secrets, overwrite } = target;
  const lines: Record<string, string> = {};
  const files: [path: string, text: string][] = [];
  for (const [name, value] of Object.entries(settings)) {
    if (secrets === undefined || !isSecret(name)) {
      lines[name] = value;
      continue;
    }
    const path = join(resolve(secrets), name);
    files.push([path, `${value}\n`]);
    lines[`${name}_FILE`] = path;
  }
  if (secrets !== undefined) mkdirSync(secrets, { recursive: true, mode: 0o700 });
  files.push([target.file, toEnvFile(lines, HEAD)]);
  for (const [path, text] of files) writeWhole(path, text, overwrite);
  return files.map(([path]) => path);
}

/** One step, so that a reader sees the old or the new file. */
function writeWhole(path: string, text: string, overwrite: boolean): void {
  const written = join(dirname(path), `.${basename(path)}.${process.pid}`);
  try {
    writeFileSync(written, text, { mode: 0o600, flag: "wx" });
    if (overwrite) renameSync(written, path);
    else linkSync(written, path);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "EEXIST") throw fileExists(path);
    throw new UsageError({
      code: "env_file_unwritable",
      message: `${path} cannot be written: ${code}.`,
      next: "Create its folder, or choose other paths with --file and --secrets.",
      cause,
    });
  } finally {
    rmSync(written, { force: true });
  }
}

function fileExists(path: string): UsageError {
  return new UsageError({
    code: "env_file_exists",
    message: `${path} already exists.`,
    next: "Add --overwrite to replace the file, or name another one with --file.",
  });
}
