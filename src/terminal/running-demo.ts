import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import type { SourceConfig } from "../core/base/config.ts";
import { isConfigured, toEnvFile, withEnvFile } from "../core/base/env-file.ts";
import { EtlError, UsageError } from "../core/base/errors.ts";
import { DATA_DIR } from "../core/base/root.ts";
import { isSecret, SETTINGS } from "../core/base/settings.ts";
import type { Environment } from "../core/base/variables.ts";

export const DEMO_DIR = join(DATA_DIR, "demo");

const placesIn = (dir: string) => ({
  env: join(dir, "demo.env"),
  sources: join(dir, "sources.json"),
  /** Locked while the demo runs. Files stay after a kill. */
  lock: join(dir, "demo.lock"),
});

interface RunningDemo {
  readonly databaseUrl: string;
  /** Undefined: the demo runs inline. */
  readonly redisUrl: string | undefined;
  readonly sources: readonly SourceConfig[];
  readonly pages: string;
  /** ISO 8601. */
  readonly syncEvery: string;
  readonly routes?: Readonly<Record<string, string>>;
  /** Most settings of the demo's environment also apply to commands. */
  readonly environment: Environment;
}

/** Writes an env file that only this user may read. Undefined if another demo runs in this folder. */
export async function announceDemo(
  dir: string,
  demo: RunningDemo,
): Promise<{ file: string; invalidate(): void } | undefined> {
  const { takeLock } = await import("./lock.ts");
  const places = placesIn(dir);
  mkdirSync(dir, { recursive: true });
  const lock = takeLock(places.lock);
  if (lock === undefined) return undefined;
  const sources = demo.sources.map(({ apiKey, ...source }) => ({ ...source, apiKey: apiKey.reveal() }));
  writePrivate(places.sources, `${JSON.stringify(sources, null, 2)}\n`);
  const values = {
    ...sharedSettings(demo.environment),
    DATABASE_URL: demo.databaseUrl,
    ...(demo.redisUrl === undefined ? {} : redisSettings(demo.environment, demo.redisUrl)),
    USAGE_SOURCES_FILE: places.sources,
    USAGE_SYNC_EVERY: demo.syncEvery,
    ...demo.routes,
    // The next two are not settings but part of a note.
    DEMO_PAGES: demo.pages,
    DEMO_PROCESS: String(process.pid),
  };
  writePrivate(places.env, toEnvFile(values, "# The running demo. It removes this file when it ends.\n"));
  return {
    file: places.env,
    invalidate: () => {
      for (const file of [places.env, places.sources]) rmSync(file, { force: true });
      lock.close();
    },
  };
}

/** The environment's Redis if it names one, else the demo's own. */
function redisSettings(environment: Environment, url: string): Record<string, string> {
  const isNamed = ["REDIS_URL", "REDIS_URL_FILE"].some((name) => environment[name]?.trim());
  return isNamed ? settingsIn(environment, (name) => name.startsWith("REDIS_")) : { REDIS_URL: url };
}

function sharedSettings(environment: Environment): Record<string, string> {
  const own = /^(HTTP_|REDIS_|USAGE_(BASE_URL|CONTROL|DEPLOYMENT|ORGANIZATION|WORKSPACE|SOURCES|ENV|WEB))/;
  return settingsIn(environment, (name) => name in SETTINGS && !isSecret(name) && !own.test(name));
}

function settingsIn(environment: Environment, isWanted: (name: string) => boolean): Record<string, string> {
  return Object.fromEntries(
    Object.entries(environment).flatMap(([name, value = ""]) =>
      isWanted(name) && value.trim() !== "" ? [[name, value]] : [],
    ),
  );
}

/** One step, because a command may read the file at any moment. */
function writePrivate(file: string, text: string): void {
  rmSync(`${file}.new`, { force: true });
  writeFileSync(`${file}.new`, text, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

export interface CommandEnvironment {
  readonly environment: Environment;
  /** `ended`: the demo was killed and left its settings. Undefined: a configuration exists, or there is no demo. */
  readonly demo: "runs" | "ended" | undefined;
  readonly note?: string;
}

/** Looks for a demo only without a database, platform, sources and env file. */
export async function commandEnvironment(
  given: Environment,
  dir: string = DEMO_DIR,
): Promise<CommandEnvironment> {
  const environment = withEnvFile(given);
  const { env: file, lock } = placesIn(dir);
  const settings = isConfigured(environment) ? undefined : readSettings(file);
  if (settings === undefined) return { environment, demo: undefined };
  const { isLocked } = await import("./lock.ts");
  if (!isLocked(lock)) return { environment, demo: "ended" };
  const { DEMO_PAGES: pages, DEMO_PROCESS: pid } = settings;
  return {
    environment: withEnvFile({ ...given, USAGE_ENV_FILE: file }),
    demo: "runs",
    note: `Nothing is configured here, so this uses the running demo (process ${pid}). Its pages: ${pages}`,
  };
}

/** Undefined if the file does not exist or cannot be read. */
function readSettings(file: string): Environment | undefined {
  try {
    return parseEnv(readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
}

export function withEndedDemo(error: unknown): unknown {
  if (!(error instanceof EtlError) || !["database_missing", "source_missing"].includes(error.code))
    return error;
  const { code, message, next } = error;
  return new UsageError({
    code,
    message: `${message} No demo runs: the last one was killed.`,
    next: `${next} \`usage-etl demo\` starts the demo again.`,
    cause: error,
  });
}
