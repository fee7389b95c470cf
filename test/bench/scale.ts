import { randomBytes } from "node:crypto";
import { Command } from "commander";
import { Redis } from "ioredis";
import { sharesOf } from "../../src/core/pipeline/source/limit-shares.ts";
import { openStore } from "../../src/core/store/db/database.ts";
import { resolveRedis } from "../../src/features/servers/redis.ts";
import { createOutput, table } from "../../src/terminal/output.ts";
import { now } from "../support/clock.ts";
import { openDatabases, runChild, startChild, whole, wholes } from "./harness.ts";
import type { Plan, Planned } from "./measured.ts";
import { type Environment, NODE_OPTIONS, runCommand } from "./processes.ts";
import type { Customer } from "./scale-server.ts";
import { compactOld, fillCoverage, leadAll, runWorkers, type WorkersRun } from "./scale-steps.ts";

/**
 * `npm run bench:scale`: a large customer from its first sync on. Planning, the queue, workers and commands are real processes on
 * a real Postgres and Redis, and the platform responds after its latency. Three years are not loaded: workers load for some
 * seconds each, and what all loads would leave in coverage is written at once.
 */

interface Options {
  readonly workspaces: number;
  readonly users: number;
  readonly days: number;
  readonly latency: number;
  readonly rate: number;
  readonly workers: number[];
  readonly seconds: number;
  readonly keep?: boolean;
}

const options = new Command("bench:scale")
  .description("a large customer, from its first sync on")
  .option("--workspaces <n>", "workspaces", whole, 1000)
  .option("--users <n>", "users of all workspaces", whole, 100_000)
  .option("--days <n>", "days of history", whole, 1096)
  .option("--latency <ms>", "of each response of the platform", whole, 300)
  .option("--rate <n>", "requests per 10 s", whole, 200)
  .option("--workers <n...>", "worker processes, one run each", wholes, [])
  .option("--seconds <n>", "of each run", whole, 40)
  .option("--keep", "leave the database on the server of DATABASE_URL, for bench:pages")
  .parse()
  .opts<Options>();
const numbersOfWorkers = options.workers.length === 0 ? [1, 4, 16] : options.workers;

const output = createOutput({ json: false });
const customer: Customer = { ...options, latencyMs: options.latency };
const databases = await openDatabases();
const redis = await resolveRedis();
const url = await databases.create();
const store = openStore({ url });
const client = new Redis(redis.url);
const platform = await startChild<{ url: string }>("./scale-server.ts", customer);
const environment: Environment = {
  DATABASE_URL: url,
  REDIS_URL: redis.url,
  REDIS_PREFIX: `bench-${randomBytes(4).toString("hex")}`,
  USAGE_BASE_URL: platform.response.url,
  USAGE_API_KEY: "bench-key",
  USAGE_SYNC_EVERY: "P1D",
  USAGE_DATA_START: new Date(now() - options.days * 86_400_000).toISOString().slice(0, 10),
  USAGE_RATE_LIMIT: String(options.rate),
  USAGE_ENV_FILE: "/dev/null",
};
const rows = <T>(query: string): Promise<T[]> =>
  store.transaction(async ({ client: pg }) => (await pg.query(query)).rows);
const value = async (query: string) =>
  Number(Object.values((await rows<Record<string, unknown>>(query))[0] ?? {})[0]);
const redisMb = async () => Number(/used_memory:(\d+)/.exec(await client.info("memory"))?.[1]) / 1e6;
const megabytes = async (name: string) =>
  Math.round((await value(`SELECT pg_total_relation_size('usage.${name}')`)) / 1e6);
const say = (title: string, head: string[], lines: (string | number)[][]) =>
  process.stdout.write(`${title}\n${table(head, lines)}\n\n`);

const PLAN = ["plan", "tasks", "created", "s", "CPU s of Node", "MB more"];

async function plan(what: string): Promise<(string | number)[]> {
  output.note(what);
  const task: Plan = { what: "plan", environment };
  const took = await runChild<Planned>("./measured.ts", task, NODE_OPTIONS);
  const moreMb = Math.round(took.peakMb - took.idleMb);
  const times = [(took.ms / 1000).toFixed(1), (took.cpuMs / 1000).toFixed(2)];
  return [what, took.planned, took.created, ...times, moreMb];
}

async function planAgain(what: string): Promise<(string | number)[]> {
  const runs: (string | number)[][] = [];
  for (let round = 0; round < 3; round++) {
    await rows("TRUNCATE usage.fetch_task");
    runs.push(await plan(what));
  }
  return runs.sort((a, b) => Number(a[3]) - Number(b[3]))[1] as (string | number)[];
}

try {
  const plans = [await plan("the first sync")];
  const total = Number(plans[0]?.[1]);
  const share = sharesOf(options.rate).fetch;
  const hoursAt = (rate: number) => (total / rate / 3600).toFixed(1);
  process.stdout.write(
    `The first load: ${total} requests at most, ${hoursAt((share.max * 1000) / share.duration)} hours by the rate limit (${share.max} per ${share.duration / 1000} s for fetch tasks)\n\n`,
  );
  say(
    "By dimension, at most",
    ["stride", "by workspace", "by each other dimension"],
    await requestsByDimension(),
  );

  const runs: WorkersRun[] = [];
  for (const workers of numbersOfWorkers) {
    output.note(`${workers} workers`);
    runs.push(await runWorkers(environment, { workers, seconds: options.seconds }, { value, redisMb }));
  }
  say(
    `Workers, ${options.seconds} s each, latency ${options.latency} ms`,
    ["workers", "requests/s", "hours for all", "records/s", "CPU ms a request", "peak MB", "Redis MB"],
    runs.map(({ workers, rate, records, cpuMs, peakMb, redisMb: most }) => [
      workers,
      rate.toFixed(1),
      hoursAt(rate),
      Math.round(records / options.seconds),
      cpuMs.toFixed(0),
      Math.round(peakMb),
      most.toFixed(1),
    ]),
  );

  output.note("coverage as all loads leave it");
  await rows("TRUNCATE usage.coverage, usage.fetch_task, usage.day_state, usage.hour_state");
  await plan("all again");
  await fillCoverage(store);
  const loaded = await value("SELECT count(*) FROM usage.coverage");
  const loadedMb = await megabytes("coverage");
  plans.push(await planAgain("all is loaded"));
  plans.push(await plan("all is loaded, and the tasks of a sync wait"));
  await leadAll(store);
  say(
    "Waiting fetch tasks of a sync",
    ["tasks", "MB"],
    [[await value("SELECT count(*) FROM usage.fetch_task"), await megabytes("fetch_task")]],
  );
  plans.push(await plan("all is loaded, and all that these tasks lead to waits"));
  const sourceId = await value("SELECT source_id FROM usage.source");
  const merge = await compactOld(store, sourceId);
  plans.push(await planAgain("a week later, intervals merged"));
  say("Planning a sync", PLAN, plans);
  say(
    "Coverage",
    ["", "rows", "MB", "s of merging"],
    [
      ["all is loaded", loaded, loadedMb, ""],
      ["a week later", loaded - merge.removed, await megabytes("coverage"), (merge.ms / 1000).toFixed(1)],
    ],
  );

  const day = (ago: number) => new Date(now() - ago * 86_400_000).toISOString().slice(0, 10);
  const commands = [
    ["status"],
    ["coverage"],
    ["plan", "--from", day(options.days), "--to", day(0)],
    ["plan", "--from", day(20), "--to", day(0), "--stride", "hour"],
  ];
  const lines: (string | number)[][] = [];
  for (const args of commands) {
    output.note(args.join(" "));
    const { ms, cpuMs, peakMb, exit, out } = await runCommand(environment, args);
    lines.push([
      args.join(" "),
      exit ?? "",
      (ms / 1000).toFixed(1),
      (cpuMs / 1000).toFixed(1),
      Math.round(peakMb),
      out.length,
    ]);
  }
  say("Commands", ["command", "exit", "s", "CPU s of Node", "peak MB", "bytes"], lines);
  process.stdout.write(
    `${options.workspaces} workspaces, ${options.users} users, ${options.days} days. ${databases.machine}\n`,
  );
  if (options.keep === true) process.stdout.write(`Kept: ${new URL(url).pathname.slice(1)}\n`);
} finally {
  await platform.close();
  client.disconnect();
  await store.close();
  if (options.keep !== true) await databases.drop(url);
  await redis.close();
  await databases.close();
}

async function requestsByDimension(): Promise<(string | number)[][]> {
  const found = await rows<Record<string, string | number>>(`
    SELECT stride, count(*)::integer AS tasks, sum(cardinality(scope_ids))::integer AS members
    FROM usage.fetch_task WHERE group_by = 'workspace' GROUP BY 1 ORDER BY 1`);
  return found.map(({ stride = "", tasks = 0, members = 0 }) => [stride, tasks, members]);
}
