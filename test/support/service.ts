import { createHash } from "node:crypto";
import type { Queue } from "bullmq";
import { Redis } from "ioredis";
import { expect } from "vitest";
import { openQueue, producerConnection, type QueueKind } from "../../jobs/queues.ts";
import { UnreachableError } from "../../src/core/base/errors.ts";
import { redisServerOf } from "../../src/core/base/redis-server.ts";
import { openStore, type Store } from "../../src/core/store/db/database.ts";
import { resolveRedis } from "../../src/features/servers/redis.ts";
import { type Standin, type StandinOptions, startStandin } from "../../src/features/standin/server.ts";
import { type Running, start, usageEtl, type Where } from "./cli.ts";
import { now } from "./clock.ts";
import { pastPooler } from "./database.ts";
import { poll } from "./poll.ts";
import { skipThis } from "./services.ts";
import { atEnd } from "./share.ts";
import { setupMigrated } from "./store.ts";

const DAY_MS = 86_400_000;
const SCALE = 0.2;
const GAPS = `SELECT count(*) FROM reporting_detail.usage_coverage_daily WHERE status NOT IN ('ok', 'empty', 'provisional')`;

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
  value<T>(text: string): Promise<T>;
  count(text: string): Promise<number>;
  loaded(deadlineMs?: number): Promise<void>;
  openQueue(kind: QueueKind): Promise<Queue>;
  createBackfill(...args: string[]): Promise<number>;
}

interface ServiceOptions {
  /** Days of usage before today. Default 5. */
  days?: number;
  /** How many of the stand-in's workspaces are configured: fewer make a sync cheaper. Default: all, listed. */
  workspaces?: number;
  standin?: StandinOptions;
  environment?: Readonly<Record<string, string>>;
  /** Servers of the test's own, which it stops itself. Default: a database of the run's, a Redis of its own. */
  servers?: { readonly store: Store; readonly databaseUrl: string; readonly redisUrl: string };
}

/**
 * Syncs every 3 s, so that no test waits for one. Each sync loads anew what is not final: where no test waits for the next
 * sync, a longer `USAGE_SYNC_EVERY` or fewer workspaces leave the machine to what it looks at.
 */
export async function setupService(options: ServiceOptions = {}): Promise<ServiceBench> {
  const { store, databaseUrl, redisUrl } = options.servers ?? (await startServers());
  const past = await pastPooler(databaseUrl);
  const direct = past === databaseUrl ? store : openStore({ url: past });
  if (direct !== store) atEnd(() => direct.close());
  const redis = new Redis(redisUrl.split(",")[0] ?? "", { maxRetriesPerRequest: null, lazyConnect: true });
  redis.on("error", () => {});
  const dataStart = daysAgo(options.days ?? 5);
  const standin = await startStandin({ dataStart, scale: SCALE, ...options.standin });
  atEnd(async () => {
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
    USAGE_HOURLY_FOR: "P1D",
    // What else a server counts has tests of its own (test/integration/pipeline/sync/meters.test.ts).
    USAGE_METERS: "traces",
    USAGE_SYNC_EVERY: "PT3S",
    USAGE_RATE_LIMIT: "5000",
    USAGE_LOG_LEVEL: "info",
    HTTP_PORT: "0",
    ...options.environment,
  };
  const value: ServiceBench["value"] = async (text) => {
    // Prepared, because tests poll with it, and planning a view takes longer than running it. A name has 63 characters.
    const name = createHash("md5").update(text).digest("hex");
    const { rows } = await direct.transaction(({ client }) => client.query({ name, text }));
    return Object.values(rows[0] ?? {})[0] as never;
  };
  const count = async (text: string) => Number(await value(text));
  return {
    store,
    databaseUrl,
    redisUrl,
    redis,
    standin,
    environment,
    value,
    count,
    serve: async ({ role = "all", environment: own = {}, ...where } = {}) => {
      const running = start(["serve", "--role", role], { ...environment, ...own }, where);
      await poll(() => running.said.stderr.includes("serving as"), { deadlineMs: 60_000 });
      return running;
    },
    loaded: async (deadlineMs = 120_000) => {
      const intervals = "SELECT count(*) FROM usage.coverage";
      await poll(async () => (await count(intervals)) > 0 && (await count(GAPS)) === 0, {
        deadlineMs,
        everyMs: 500,
      });
    },
    openQueue: async (kind) => {
      const connection = producerConnection(redisServerOf({ url: redisUrl }));
      const queue = openQueue(kind, "default", connection);
      atEnd(async () => {
        await queue.close();
        connection.disconnect();
      });
      await queue.waitUntilReady();
      return queue;
    },
    createBackfill: async (...args) => {
      const { code, stdout } = await usageEtl(["backfill", ...args, "--detach", "--json"], environment);
      expect(code).toBe(0);
      const [{ backfillId }] = JSON.parse(stdout) as [{ backfillId: number }];
      return backfillId;
    },
  };
}

/** A Redis that only this test uses, ended with it; never a named one, since tests empty and kill it. */
export async function startRedis(): Promise<string> {
  const { PATH = "" } = process.env;
  const service = await resolveRedis({ env: { PATH }, say: () => {} }).catch((error: Error) => {
    if (error instanceof UnreachableError) skipThis(error.message);
    throw error;
  });
  atEnd(() => service.close());
  return service.url;
}

async function startServers() {
  const { store, url: databaseUrl } = await setupMigrated();
  return { store, databaseUrl, redisUrl: await startRedis() };
}

export function daysAgo(days: number): string {
  return new Date(now() - days * DAY_MS).toISOString().slice(0, 10);
}

export async function lateUsageArrives(
  bench: ServiceBench,
  { source = "default", deadlineMs = 30_000 } = {},
): Promise<void> {
  const [stream] = bench.standin.organisation.streams;
  if (stream === undefined) throw new Error("the stand-in has no streams");
  const { project, user, key } = stream;
  const total = () =>
    bench.count(
      `SELECT coalesce(sum(traces), 0) FROM reporting.fct_usage_workspace_daily
       WHERE source_id = '${source}' AND workspace_id = '${project.workspace.id}'
         AND usage_date = (now() AT TIME ZONE 'UTC')::date - 1`,
    );
  const before = await total();
  const at = Math.floor(now() / DAY_MS - 1) * DAY_MS;
  bench.standin.ledger.change({ project, user, key, at }, 17);
  await poll(async () => (await total()) === before + 17, { deadlineMs, everyMs: 200 });
}

export function urlOf({ said }: Running): string {
  const [, url = ""] = /health and metrics on (\S+);/.exec(said.stderr) ?? [];
  return url;
}

/** Asks the HTTP side of a process. */
export function request(running: Running, path: "/livez" | "/readyz" | "/metrics"): Promise<Response> {
  return fetch(urlOf(running) + path);
}

export async function metricsOf(running: Running): Promise<string> {
  return (await request(running, "/metrics")).text();
}

export function logOf(running: Running): Record<string, unknown>[] {
  return `${running.said.stdout}\n${running.said.stderr}`
    .split("\n")
    .filter((line) => line.startsWith("{") && line.endsWith("}"))
    .map((line) => JSON.parse(line));
}

export function jobsDone(running: Running, name: string): number {
  return logOf(running).filter((line) => line.msg === "job" && line.name === name).length;
}

/** Resolves when the process has done so many more syncs. */
export async function syncsGoOn(running: Running, more: number, deadlineMs = 30_000): Promise<void> {
  const before = jobsDone(running, "sync");
  await poll(() => jobsDone(running, "sync") >= before + more, { deadlineMs, everyMs: 100 });
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
