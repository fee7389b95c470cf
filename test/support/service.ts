import { Redis } from "ioredis";
import { onTestFinished } from "vitest";
import { resolveRedis } from "../../src/services/resolve.ts";
import { type Standin, type StandinOptions, startStandin } from "../../src/standin/server.ts";
import type { Store } from "../../src/store/db/database.ts";
import { type Running, start, type Where } from "./cli.ts";
import { poll } from "./poll.ts";
import { setupMigrated } from "./store.ts";

const DAY_MS = 86_400_000;
const GAPS = `SELECT count(*) FROM reporting.usage_coverage_daily WHERE status NOT IN ('ok', 'empty', 'provisional')`;

/** A database, a Redis that only this test uses, a stand-in, and the environment of a process that serves them. */
export interface ServiceBench {
  readonly store: Store;
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly redis: Redis;
  readonly standin: Standin;
  readonly environment: Readonly<Record<string, string>>;
  /** Starts `usage-etl serve` as a process of its own and waits until it serves. */
  serve(
    options?: { role?: string; environment?: Readonly<Record<string, string>> } & Where,
  ): Promise<Running>;
  /** The one value of a query's one row. */
  value<T>(text: string): Promise<T>;
  /** Resolves when every day and hour that is expected is loaded. */
  loaded(deadlineMs?: number): Promise<void>;
}

/** `days` of usage before today; a sync every three seconds, so that nobody waits long for one. */
export async function setupService(
  options: {
    days?: number;
    /** How many of the stand-in's workspaces the source is configured with: a sync costs as much less. Default: all, listed. */
    workspaces?: number;
    standin?: StandinOptions;
    environment?: Readonly<Record<string, string>>;
    /** Servers of the test's own; whoever starts them stops them. Default: a database of the run's, a fresh Redis. */
    servers?: { readonly store: Store; readonly databaseUrl: string; readonly redisUrl: string };
  } = {},
): Promise<ServiceBench> {
  const { store, databaseUrl, redisUrl } = options.servers ?? (await startServers());
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: null });
  redis.on("error", () => {});
  const dataStart = new Date(Date.now() - (options.days ?? 5) * DAY_MS).toISOString().slice(0, 10);
  const standin = await startStandin({ dataStart, ...options.standin });
  onTestFinished(async () => {
    redis.disconnect();
    await standin.close();
  });
  const workspaceIds = standin.organisation.workspaces.slice(0, options.workspaces ?? 0).map(({ id }) => id);
  const environment = {
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    USAGE_BASE_URL: standin.url,
    USAGE_API_KEY: standin.apiKey,
    USAGE_DATA_START: dataStart,
    USAGE_WORKSPACE_IDS: workspaceIds.join(","),
    USAGE_HOURLY_FOR: "P2D",
    USAGE_SYNC_EVERY: "PT3S",
    USAGE_RATE_LIMIT: "5000",
    USAGE_LOG_LEVEL: "info",
    HTTP_PORT: "0",
    ...options.environment,
  };
  const value: ServiceBench["value"] = async (text) => {
    const { rows } = await store.transaction(({ client }) => client.query(text));
    return Object.values(rows[0] ?? {})[0] as never;
  };
  return {
    store,
    databaseUrl,
    redisUrl,
    redis,
    standin,
    environment,
    value,
    serve: async ({ role = "all", environment: own = {}, ...where } = {}) => {
      const running = start(["serve", "--role", role], { ...environment, ...own }, where);
      await poll(() => running.said.stderr.includes("serving as"), { deadlineMs: 60_000 });
      return running;
    },
    loaded: (deadlineMs = 120_000) =>
      poll(
        async () => {
          const fragments = await value<number>("SELECT count(*) FROM usage.coverage");
          return fragments > 0 && (await value<number>(GAPS)) === 0;
        },
        // The view costs 0.1 s of CPU, which what is loading needs.
        { deadlineMs, everyMs: 500 },
      ).then(() => {}),
  };
}

async function startServers() {
  const { store, url: databaseUrl } = await setupMigrated();
  const { PATH = "" } = process.env;
  // Never the named one: tests empty and kill it.
  const service = await resolveRedis({ env: { PATH }, say: () => {} });
  onTestFinished(() => service.close());
  return { store, databaseUrl, redisUrl: service.url };
}

/** Lines of the log of a process, parsed. */
export function logOf(running: Running): Record<string, unknown>[] {
  return `${running.said.stdout}\n${running.said.stderr}`
    .split("\n")
    .filter((line) => line.startsWith("{") && line.endsWith("}"))
    .map((line) => JSON.parse(line));
}

/** Ends a process with a signal and resolves to its exit code and how long that took, milliseconds. */
export async function end(
  running: Running,
  signal: NodeJS.Signals,
): Promise<{ code: number | null; ms: number }> {
  const before = performance.now();
  running.process.kill(signal);
  const { code } = await running.ended;
  return { code, ms: performance.now() - before };
}
