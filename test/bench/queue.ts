import type { ChildProcess } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { Command } from "commander";
import { resolveRedis } from "../../src/features/servers/redis.ts";
import { startStandin } from "../../src/features/standin/server.ts";
import { table } from "../../src/terminal/output.ts";
import { hand, median, openDatabases, value, whole } from "./harness.ts";
import { end, start as startCommand } from "./processes.ts";

/**
 * `npm run bench:queue`: what the queue costs beside `--inline`, for the same tasks against the same stand-in, in interleaved
 * rounds. Everything shares the cores of this machine; the stand-in runs in this process.
 */

const WAYS = [0, 1, 4] as const;
const RATE = "SELECT count(*) / extract(epoch FROM max(finished_at) - min(fetched_at)) FROM usage.fetch";
const TASKS = "SELECT count(*) FROM usage.fetch";
const LEFT = "SELECT count(*) FROM usage.fetch_task WHERE state IN ('waiting', 'queued')";

const options = new Command("bench:queue")
  .option("--rounds <n>", "interleaved rounds", whole, 5)
  .option(
    "--hours <days>",
    "for which hours are loaded, so how many tasks there are: 45 days make 944",
    whole,
    45,
  )
  .parse()
  .opts<{ rounds: number; hours: number }>();

const databases = await openDatabases();
const redis = await resolveRedis();
const standin = await startStandin();
const children = new Set<ChildProcess>();

try {
  process.stdout.write(await measureRounds());
} finally {
  await endAll(children);
  await standin.close();
  await redis.close();
  await databases.close();
}

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

/** The first load of everything. Returns its tasks a second, and how many there were. */
async function load(workers: number): Promise<{ rate: number; tasks: number }> {
  const url = await databases.create();
  const started = Array.from({ length: workers }, () => start(url, "serve", "--role", "worker"));
  const main = workers === 0 ? start(url, "sync", "--inline") : start(url, "serve", "--role", "scheduler");
  const isGone = () => main.exitCode !== null;
  while (!isGone() && (await value(url, TASKS)) === 0) await pause(100);
  while (!isGone() && (workers === 0 || (await value(url, LEFT)) > 0)) await pause(250);
  if (isGone() && main.exitCode !== 0)
    throw new Error(`${main.spawnargs.slice(-2).join(" ")} ended with exit code ${main.exitCode}.`);
  await endAll([...started, main]);
  const found = { rate: await value(url, RATE), tasks: await value(url, TASKS) };
  await databases.drop(url);
  return found;
}

async function measureRounds(): Promise<string> {
  const rates = new Map(WAYS.map((way): [number, number[]] => [way, []]));
  const tasks = new Set<number>();
  for (let round = 0; round < options.rounds; round++) {
    for (const way of round % 2 === 0 ? WAYS : WAYS.toReversed()) {
      const found = await load(way);
      rates.get(way)?.push(found.rate);
      tasks.add(found.tasks);
    }
  }
  const inline = rates.get(0) ?? [];
  const rows = [...rates].map(([way, own]) => {
    const ratios = own.map((rate, round) => (inline[round] ?? Number.NaN) / rate);
    const name = way === 0 ? "--inline" : `queue, ${way} worker${way === 1 ? "" : "s"}`;
    if (way !== 0) hand(`fetch tasks, ${name}`, "--inline", ratios);
    const spread = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`;
    return [name, Math.round(median(own)), median(ratios).toFixed(2), spread];
  });
  const text = table(["way", "tasks/s", "time of inline", "spread"], rows);
  return `${text}\nMedians of ${options.rounds} interleaved rounds of ${[...tasks].join(" or ")} tasks.\n`;
}
