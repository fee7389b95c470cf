import { Redis } from "ioredis";
import pg from "pg";
import { onTestFinished } from "vitest";
import { DAY_MS, HOUR_MS } from "../../../src/core/domain/time/stride.ts";
import type { Interval } from "../../../src/core/domain/time/window.ts";
import { type Dice, dice } from "../../../src/features/standin/engine/random.ts";
import { type Standin, startStandin } from "../../../src/features/standin/server.ts";
import type { createAuthority } from "../../support/certificates.ts";
import { type Ended, type Running, start, usageEtl } from "../../support/cli.ts";
import { now as currentTime } from "../../support/clock.ts";
import { poll } from "../../support/poll.ts";
import { openRelay, type Relay } from "../../support/relay.ts";
import { logOf } from "../../support/service.ts";
import { farFromTheNextHour } from "../../support/source.ts";
import { type HostilePlatform, openPlatform } from "./platform.ts";
import { openReceiver, type Receiver } from "./receiver.ts";
import { createPostgres, createRedis, type Server } from "./servers.ts";
import { type CommitHook, piecesOf, statementsOf } from "./wire.ts";

export interface World {
  readonly dice: Dice;
  readonly standin: Standin;
  /** Changed as the stand-in is, and never asked by the product: what Postgres must hold in the end. */
  readonly truth: Standin;
  readonly platform: HostilePlatform;
  readonly receiver: Receiver;
  redis: Server;
  postgres: Server;
  readonly workers: Worker[];
  readonly range: Interval;
  readonly workspaceIds: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  addWorker(options?: WorkerOptions): Promise<Worker>;
  sql<T>(text: string, parameters?: unknown[]): Promise<T[]>;
  keys: Redis;
  /** The clock of every process, epoch milliseconds. */
  now(): number;
  change(): void;
  onChange: () => void;
  createBackfill(): Promise<number>;
  command(...args: string[]): Promise<Ended>;
  /** Fetches the last days in a process of its own, without the queue, over lines that are so slow (milliseconds a piece). */
  loadByHand(lines: { readonly postgresMs?: number; readonly platformMs?: number }): Promise<void>;
}

export interface WorldOptions {
  readonly seed?: number;
  readonly workers?: number;
  readonly aof?: boolean;
  readonly postgres?: Server;
  readonly environment?: Readonly<Record<string, string>>;
  readonly worker?: WorkerOptions;
  readonly authority?: ReturnType<typeof createAuthority>;
  /** What the clock of every process shows at the start, epoch milliseconds (clock.ts). Default: the time. */
  readonly startsAt?: number;
}

const DAYS = 8;
const WORKSPACES = 2;
const NUMBERS: pg.CustomTypesConfig = {
  getTypeParser: (oid, format) =>
    oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format as "text"),
};
export const API_KEY = "chaos-platform-key";

/** The platform's clock stands still, so that the truth changes only where a row changes it. */
export async function makeWorld(options: WorldOptions = {}): Promise<World> {
  const now = options.startsAt ?? (await farFromTheNextHour());
  const range = {
    start: Math.floor(now / DAY_MS) * DAY_MS - DAYS * DAY_MS,
    end: Math.ceil(now / HOUR_MS) * HOUR_MS,
  };
  const dataStart = new Date(range.start).toISOString().slice(0, 10);
  const [standin, truth, redis, postgres] = await Promise.all([
    startStandin({ dataStart, now: () => now, apiKey: API_KEY }),
    startStandin({ dataStart, now: () => now, apiKey: API_KEY }),
    createRedis({ aof: options.aof ?? true }),
    options.postgres ?? createPostgres(),
  ]);
  const { authority } = options;
  const certificate = authority?.issue("127.0.0.1");
  const [platform, receiver] = await Promise.all([openPlatform(standin.url, certificate), openReceiver()]);
  onTestFinished(async () => {
    await Promise.all([platform.close(), standin.close(), truth.close()]);
  });
  await Promise.all([redis.start(), ...(options.postgres === undefined ? [postgres.start()] : [])]);
  const workspaceIds = standin.organisation.workspaces.slice(0, WORKSPACES).map(({ id }) => id);
  const environment = {
    DATABASE_URL: postgres.url,
    REDIS_URL: redis.url,
    USAGE_BASE_URL: `http${authority === undefined ? "" : "s"}://127.0.0.1:${platform.port}`,
    USAGE_ALERT_WEBHOOK_URL: receiver.url,
    ...(authority === undefined ? {} : { NODE_EXTRA_CA_CERTS: authority.ca }),
    USAGE_API_KEY: API_KEY,
    USAGE_DATA_START: dataStart,
    USAGE_WORKSPACE_IDS: workspaceIds.join(","),
    USAGE_HOURLY_FOR: `P${DAYS}D`,
    USAGE_SYNC_EVERY: "PT8S",
    USAGE_RATE_LIMIT: "2000",
    USAGE_LOG_LEVEL: "info",
    HTTP_PORT: "0",
    ...options.environment,
  };
  const rolls = dice(options.seed ?? 1);
  const world: World = {
    dice: rolls,
    standin,
    truth,
    platform,
    receiver,
    redis,
    postgres,
    range,
    workspaceIds,
    environment,
    keys: openKeys(redis),
    workers: [],
    onChange: () => {},
    now: () => currentTime() + Number(process.env.CLOCK_OFFSET ?? 0) * 1_000,
    addWorker: async (own) => {
      const worker = await startWorker(world, { ...options.worker, ...own });
      world.workers.push(worker);
      return worker;
    },
    sql: async (text, parameters = []) => {
      const client = new pg.Client({
        connectionString: world.postgres.url,
        connectionTimeoutMillis: 5_000,
        query_timeout: 30_000,
        types: NUMBERS,
      });
      client.on("error", () => {});
      await client.connect();
      try {
        return (await client.query(text, parameters)).rows as never;
      } finally {
        await client.end();
      }
    },
    change: () => {
      const [from, to] = [Math.ceil((now - 2 * DAY_MS) / HOUR_MS), Math.floor(now / HOUR_MS)];
      const place = rolls.below(truth.organisation.streams.length);
      const at = (from + rolls.below(to - from)) * HOUR_MS;
      const delta = 1 + rolls.below(1_000);
      for (const { organisation, ledger } of [truth, standin]) {
        const stream = organisation.streams[place];
        if (stream === undefined) throw new Error("the stand-ins differ");
        const { project, user, key } = stream;
        ledger.change({ project, user, key, at }, delta);
      }
      world.onChange();
    },
    createBackfill: async () => {
      const days = ["--from", day(now - 5 * DAY_MS), "--to", day(now + DAY_MS), "--stride", "hour"];
      const args = ["backfill", ...days, "--reprocess", "all", "--detach", "--json"];
      const { code, stdout, stderr } = await world.command(...args);
      if (code !== 0) throw new Error(`backfill: ${stderr}`);
      const [{ backfillId }] = JSON.parse(stdout) as [{ backfillId: number }];
      return backfillId;
    },
    command: (...args) =>
      usageEtl(args, { ...environment, DATABASE_URL: world.postgres.url, REDIS_URL: world.redis.url }),
    loadByHand: async ({ postgresMs = 0, platformMs = 0 }) => {
      const [postgres, platform] = await Promise.all([
        openRelay(world.postgres.port),
        openRelay(world.platform.port),
      ]);
      Object.assign(postgres, { delayMs: postgresMs });
      Object.assign(platform, { delayMs: platformMs });
      const days = ["--from", day(now - 2 * DAY_MS), "--to", day(now + DAY_MS), "--stride", "hour"];
      try {
        await usageEtl(["backfill", ...days, "--reprocess", "all", "--inline", "--json"], {
          ...environment,
          DATABASE_URL: postgres.through(world.postgres.url),
          USAGE_BASE_URL: platform.through(environment.USAGE_BASE_URL),
        });
      } finally {
        await Promise.all([postgres.close(), platform.close()]);
      }
    },
  };
  for (let i = 0; i < (options.workers ?? 2); i++) await world.addWorker();
  return world;
}

/** A connection past all wires, until the test ends. */
export function openKeys({ url }: Server): Redis {
  const keys = new Redis(url, { maxRetriesPerRequest: null, retryStrategy: () => 100 });
  keys.on("error", () => {});
  onTestFinished(() => keys.disconnect());
  return keys;
}

function day(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

export interface Worker {
  readonly running: Running;
  readonly postgres: Relay;
  readonly redis: Relay;
  readonly platform: Relay;
  onCommit: CommitHook;
  onStatement: () => void;
  onRedis: () => void;
  log(): LogLine[];
  isGone: boolean;
}

interface LogLine {
  readonly time?: string;
  readonly level?: number;
  readonly msg?: string;
  readonly name?: string;
  readonly code?: string;
  readonly reason?: string;
  readonly [field: string]: unknown;
}

interface WorkerOptions {
  readonly release?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly output?: string;
}

/** Milliseconds that a response of the platform takes: as long as a short one does over the internet. */
const PLATFORM_DELAY_MS = 40;

/** Exit code of a process whose server is out of reach (docs/cli.md). */
const UNREACHABLE = 6;
/** Servers may be away meanwhile, and the machine busy. */
const SERVES_WITHIN_MS = 300_000;

async function startWorker(world: World, { release, environment, output }: WorkerOptions): Promise<Worker> {
  const [postgres, redis, platform] = await Promise.all([
    openRelay(world.postgres.port, {
      filterOf: () =>
        statementsOf({ commit: (moment) => worker.onCommit(moment), statement: () => worker.onStatement() }),
      isHalfOpen: true,
    }),
    openRelay(world.redis.port, { filterOf: () => piecesOf(() => worker.onRedis()), isHalfOpen: true }),
    openRelay(world.platform.port, { isHalfOpen: true }),
  ]);
  platform.delayMs = PLATFORM_DELAY_MS;
  const begin = () =>
    start(
      ["serve"],
      {
        ...world.environment,
        DATABASE_URL: postgres.through(world.environment.DATABASE_URL),
        REDIS_URL: redis.through(world.environment.REDIS_URL),
        USAGE_BASE_URL: platform.through(world.environment.USAGE_BASE_URL),
        ...environment,
      },
      { ...(release !== undefined && { release }), output },
    );
  onTestFinished(async () => {
    await Promise.all([postgres.close(), redis.close(), platform.close()]);
  });
  let running = begin();
  const worker: Worker = {
    postgres,
    redis,
    platform,
    get running() {
      return running;
    },
    isGone: false,
    onCommit: () => "pass",
    onStatement: () => {},
    onRedis: () => {},
    log: () => logOf(running),
  };
  await poll(
    () => {
      if (running.process.exitCode === UNREACHABLE) running = begin();
      return running.said.stderr.includes("serving as");
    },
    { deadlineMs: SERVES_WITHIN_MS },
  );
  return worker;
}
