import type { ChildProcess } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { Command } from "commander";
import { Redis } from "ioredis";
import pg from "pg";
import { table } from "../../src/cli/report/output.ts";
import { resolveRedis } from "../../src/local/servers/resolve.ts";
import { startStandin } from "../../src/local/standin/server.ts";
import { hand, median, openDatabases } from "./harness.ts";
import { countedOf, end, memoryOf, postgresCpuMs, start as startCommand } from "./processes.ts";

/**
 * `npm run bench:queue`: what the queue costs beside `--inline`, for the same tasks against the same stand-in, in interleaved
 * rounds, and the CPU time of each part; then what 50,000 due tasks take of memory. Everything shares the cores of this machine;
 * the stand-in runs in this process. Processes are new: each compiles its code during its first thousand tasks. Workers live for weeks,
 * so the second half of the tasks is shown too.
 */

const DUE = 50_000;
const DAY_MS = 86_400_000;
/** `sync --inline` has no worker. */
const WAYS = [0, 1, 4] as const;
/** Tasks a second between the first and the last request: start-up is not the queue's cost. `leftOut`: of the first ones. */
const rateOf = (leftOut: number) =>
  `SELECT count(*) / extract(epoch FROM max(finished_at) - min(fetched_at))
   FROM (SELECT finished_at, fetched_at FROM usage.fetch ORDER BY fetch_number OFFSET ${leftOut}) f`;
const TASKS = "SELECT count(*) FROM usage.fetch";
const LEFT = "SELECT count(*) FROM usage.fetch_task WHERE state IN ('waiting', 'queued')";

const options = new Command("bench:queue")
  .option("--rounds <n>", "interleaved rounds", Number, 5)
  .option("--latency <ms>", "over which each answer of the platform comes", Number, 0)
  .option(
    "--hours <days>",
    "for which hours are loaded, so how many tasks there are: 45 days make 944",
    Number,
    45,
  )
  .option("--without-due", "only the rounds")
  .parse()
  .opts<{ rounds: number; latency: number; hours: number; withoutDue?: boolean }>();

const databases = await openDatabases();
const redis = await resolveRedis();
const slow = { fault: { kind: "slow", ms: options.latency }, times: 1_000_000 } as const;
const standin = await startStandin(options.latency === 0 ? {} : { faults: { script: [slow] } });
const client = new Redis(redis.url);
const children = new Set<ChildProcess>();

function start(databaseUrl: string, ...args: string[]): ChildProcess {
  const environment = {
    DATABASE_URL: databaseUrl,
    REDIS_URL: redis.url,
    REDIS_PREFIX: new URL(databaseUrl).pathname.slice(1),
    USAGE_BASE_URL: standin.url,
    USAGE_API_KEY: standin.apiKey,
    USAGE_RATE_LIMIT: "1000000",
    USAGE_HOURLY_FOR: `P${options.hours}D`,
    USAGE_SYNC_EVERY: "P1D",
  };
  const child = startCommand(environment, ...args);
  child.stderr.pipe(process.stderr, { end: false });
  children.add(child);
  return child;
}

async function endAll(started: Iterable<ChildProcess>): Promise<void> {
  for (const child of started) {
    children.delete(child);
    await end(child);
  }
}

/** A new database, with one value asked of it at a time. */
async function openDatabase() {
  const url = await databases.create();
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  // Its connection may still be closing when the database is dropped.
  pool.on("error", () => {});
  const value = async (text: string) => Number(Object.values((await pool.query(text)).rows[0] ?? {})[0]);
  const close = async () => {
    await pool.end();
    await databases.drop(url);
  };
  return { url, value, close };
}

type Database = Awaited<ReturnType<typeof openDatabase>>;

/** What is shown of a load: all of it, and its second half. */
const SHOWN = ["all", "second half"] as const;
type Spent = Awaited<ReturnType<typeof spentOn>>;

/** CPU ms of each part for each task between two moments. */
function msASlice(from: Spent, to: Spent): number[] {
  return to.cpuMs.map((ms, part) => (ms - (from.cpuMs[part] ?? 0)) / (to.tasks - from.tasks));
}

/**
 * The first load of everything. Resolves to the processes that go on, and the CPU time of each part since the first fetch task,
 * for each of `SHOWN`.
 */
async function load(database: Database, workers: number) {
  const started = Array.from({ length: workers }, () => start(database.url, "serve", "--role", "worker"));
  started.push(
    workers === 0
      ? start(database.url, "sync", "--inline")
      : start(database.url, "serve", "--role", "scheduler"),
  );
  const main = started.at(-1) as ChildProcess;
  const isGone = () => main.exitCode !== null;
  while (!isGone() && (await database.value(TASKS)) === 0) await pause(100);
  const seen = [await spentOn(database, started)];
  // A sync that runs by itself keeps no waiting tasks. What it took is known until it is gone.
  while (!isGone() && (workers === 0 || (await database.value(LEFT)) > 0)) {
    await pause(250);
    const now = await spentOn(database, started);
    if (!isGone()) seen.push(now);
  }
  if (isGone() && main.exitCode !== 0)
    throw new Error(`${main.spawnargs.slice(-2).join(" ")} ended with exit code ${main.exitCode}.`);
  const [first, last] = [seen[0] as Spent, seen.at(-1) as Spent];
  const half = seen.find(({ tasks }) => tasks >= (first.tasks + last.tasks) / 2) as Spent;
  return { started, spent: [msASlice(first, last), msASlice(half, last)] };
}

const PARTS = ["usage-etl", "Postgres", "Redis", "stand-in and this benchmark"];

/** Tasks fetched so far, and the CPU time of each part. */
async function spentOn(database: Database, started: readonly ChildProcess[]) {
  const { user, system } = process.cpuUsage();
  const ofRedis = await client.info("cpu");
  const redisSeconds = ["user", "sys"].map((kind) =>
    Number(new RegExp(`used_cpu_${kind}:([\\d.]+)`).exec(ofRedis)?.[1]),
  );
  const cpuMs = [
    started.reduce((sum, { pid }) => sum + countedOf(pid).own, 0),
    postgresCpuMs(await database.value("SELECT pg_backend_pid()")),
    redisSeconds.reduce((sum, seconds) => sum + seconds * 1_000, 0),
    (user + system) / 1_000,
  ];
  return { tasks: await database.value(TASKS), cpuMs };
}

interface Round {
  /** Tasks a second. */
  readonly rate: number;
  /** CPU ms of each part for each task. */
  readonly spent: readonly number[];
}

async function measureRounds(): Promise<string> {
  /** By way and what is shown. */
  const rounds = new Map<string, Round[]>();
  const tasks = new Set<number>();
  for (let round = 0; round < options.rounds; round++) {
    for (const way of round % 2 === 0 ? WAYS : WAYS.toReversed()) {
      const database = await openDatabase();
      const { started, spent } = await load(database, way);
      await endAll(started);
      const all = await database.value(TASKS);
      tasks.add(all);
      for (const [i, shown] of SHOWN.entries()) {
        const rate = await database.value(rateOf(shown === "all" ? 0 : Math.floor(all / 2)));
        const key = `${way} ${shown}`;
        rounds.set(key, [...(rounds.get(key) ?? []), { rate, spent: spent[i] ?? [] }]);
      }
      await database.close();
    }
  }
  const rows = SHOWN.flatMap((shown) => {
    const inline = rounds.get(`0 ${shown}`) ?? [];
    return WAYS.map((way) => {
      const own = rounds.get(`${way} ${shown}`) ?? [];
      // Both sides of a round meet the same moods of the machine.
      const ratios = own.map(({ rate }, round) => (inline[round]?.rate ?? Number.NaN) / rate);
      const name = way === 0 ? "--inline" : `queue, ${way} worker${way === 1 ? "" : "s"}`;
      if (way !== 0 && shown === "all") hand(`fetch tasks, ${name}`, "--inline", ratios);
      return [
        name,
        shown,
        Math.round(median(own.map(({ rate }) => rate))),
        median(ratios).toFixed(2),
        `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`,
        ...PARTS.map((_, part) => median(own.map(({ spent }) => spent[part] ?? 0)).toFixed(2)),
      ];
    });
  });
  const head = ["way", "tasks", "tasks/s", "time of inline", "spread"];
  const text = table([...head, ...PARTS.map((part) => `${part}, CPU ms`)], rows);
  const about = `${[...tasks].join(" or ")} tasks, CPU time for each; answers take ${options.latency} ms.`;
  return `${text}\nMedians of ${options.rounds} interleaved rounds; ${about}\n`;
}

async function redisMb(): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await client.info("memory"))?.[1]) / 2 ** 20;
}

async function measureDue(): Promise<string> {
  const database = await openDatabase();
  const { started } = await load(database, 2);
  // The same hour window for ever older days: answers without records, so that only their number weighs. The source's number
  // is asked for: processes that enter a source at the same instant each draw one, and any of these may be kept.
  const since = new Date(Date.now() - 20 * DAY_MS).toISOString();
  await database.value(
    `WITH b AS (
       INSERT INTO usage.backfill (source_id, stride, period_start, period_end, groupings, workspace_ids, reprocess)
       SELECT source_id, 'hour', '2020-01-01Z', '${since}', '{project}', '{a}', 'all' FROM usage.source
       RETURNING backfill_id, source_id
     ), s AS (
       INSERT INTO usage.fetch_task (source_id, backfill_id, group_by, stride, period_start, period_end, scope_ids, workspace_ids)
       SELECT b.source_id, b.backfill_id, 'project', 'hour', at, at + interval '1 hour', ARRAY[c.scope_id], ARRAY[e.external_id]
       FROM b, generate_series(date_trunc('hour', '${since}'::timestamptz) - interval '${DUE} hours', '${since}', interval '1 hour') at,
            (SELECT scope_id, workspace_id FROM usage.trace_scope WHERE group_by = 'project' AND stride = 'hour' LIMIT 1) c
       JOIN usage.entity e ON e.entity_id = c.workspace_id
       RETURNING 1
     ) SELECT count(*) FROM s`,
  );
  let mostRedis = 0;
  for (let i = 0; i < 60; i++) {
    mostRedis = Math.max(mostRedis, await redisMb());
    await pause(250);
  }
  const [first, second, scheduler] = started.map((child) => Math.round(memoryOf(child).peak));
  await endAll(started);
  await database.close();
  return `\nwith ${DUE.toLocaleString("en-US")} due tasks: Redis ${mostRedis.toFixed(1)} MB, workers ${first} and ${second} MB, scheduler ${scheduler} MB at their peak\n`;
}

try {
  process.stdout.write(await measureRounds());
  if (options.withoutDue !== true) process.stdout.write(await measureDue());
} finally {
  await endAll(children);
  client.disconnect();
  await standin.close();
  await redis.close();
  await databases.close();
}
