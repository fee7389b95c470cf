import { type ChildProcess, spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { table } from "../../src/cli/report/output.ts";
import { resolvePostgres, resolveRedis } from "../../src/services/resolve.ts";
import { startStandin } from "../../src/standin/server.ts";
import { openStore } from "../../src/store/db/database.ts";
import { migrate } from "../../src/store/db/migrate.ts";

/**
 * `npm run bench:queue`: what the queue costs beside `--inline`, for the same slices against the same stand-in, and what
 * 50,000 due slices take of memory. Everything shares the cores of this machine; the stand-in runs in this process.
 */

// Started as the image starts it.
const CLI = fileURLToPath(new URL("../../src/cli.ts", import.meta.url));
const DUE = 50_000;
const DAY_MS = 86_400_000;

const postgres = await resolvePostgres();
const redis = await resolveRedis();
const standin = await startStandin();
const client = new Redis(redis.url);
const children: ChildProcess[] = [];
const environment = {
  PATH: process.env.PATH ?? "",
  REDIS_URL: redis.url,
  USAGE_BASE_URL: standin.url,
  USAGE_API_KEY: standin.apiKey,
  USAGE_RATE_LIMIT: "1000000",
  USAGE_HOURLY_FOR: "P45D",
  USAGE_SYNC_EVERY: "P1D",
  USAGE_LOG_LEVEL: "warn",
  HTTP_PORT: "0",
};

function start(databaseUrl: string, ...args: string[]): ChildProcess {
  const env = { ...environment, DATABASE_URL: databaseUrl };
  const child = spawn(process.execPath, ["--max-semi-space-size=4", CLI, ...args], {
    env,
    stdio: ["ignore", "ignore", "inherit"],
  });
  children.push(child);
  return child;
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null) await new Promise((resolve) => child.once("exit", resolve));
}

/** A migrated database of its own, with one value asked of it at a time. */
async function database(name: string) {
  const admin = openStore({ url: postgres.url });
  await admin.transaction(async ({ client: pg }) => {
    // CREATE DATABASE does not run inside a transaction.
    await pg.query("COMMIT");
    await pg.query(`CREATE DATABASE ${name}`);
    await pg.query("BEGIN");
  });
  await admin.close();
  const url = Object.assign(new URL(postgres.url), { pathname: `/${name}` }).href;
  const store = openStore({ url });
  await migrate(store);
  const value = (text: string) =>
    store.transaction(async ({ client: pg }) =>
      Number(Object.values((await pg.query(text)).rows[0] ?? {})[0]),
    );
  return { url, value, close: () => store.close() };
}

/** Slices a second between the first and the last request of the ledger: start-up is not the queue's cost. */
const RATE = `SELECT count(*) / extract(epoch FROM max(finished_at) - min(fetched_at)) FROM usage.fetch`;
const LEFT = "SELECT count(*) FROM usage.slice WHERE state IN ('waiting', 'queued')";
const peakMb = async (child: ChildProcess) => {
  const status = await readFile(`/proc/${child.pid}/status`, "utf8");
  return Math.round(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
};
const redisMb = async () => Number(/used_memory:(\d+)/.exec(await client.info("memory"))?.[1]) / 2 ** 20;

try {
  const inline = await database("bench_inline");
  await ended(start(inline.url, "sync", "--inline"));
  const inlineRate = await inline.value(RATE);
  const slices = await inline.value("SELECT count(*) FROM usage.fetch");

  const queued = await database("bench_queue");
  const workers = [
    start(queued.url, "serve", "--role", "worker"),
    start(queued.url, "serve", "--role", "worker"),
  ];
  workers.push(start(queued.url, "serve", "--role", "scheduler"));
  while ((await queued.value("SELECT count(*) FROM usage.fetch")) === 0) await pause(100);
  while ((await queued.value(LEFT)) > 0) await pause(100);
  const queueRate = await queued.value(RATE);
  process.stdout.write(
    `${table(
      ["way", "slices", "slices/s", "x"],
      [
        ["--inline", slices, Math.round(inlineRate), 1],
        [
          "queue, two workers",
          await queued.value("SELECT count(*) FROM usage.fetch"),
          Math.round(queueRate),
          Number((queueRate / inlineRate).toFixed(2)),
        ],
      ],
    )}\n`,
  );

  // The same hour window for ever older days: answers without records, so that only their number weighs. The source's number
  // is asked for: processes that enter a source at the same instant each draw one, and any of these may be kept.
  const since = new Date(Date.now() - 20 * DAY_MS).toISOString();
  await queued.value(
    `WITH b AS (
       INSERT INTO usage.backfill (source_id, stride, period_start, period_end, groupings, workspaces, reprocess)
       SELECT source_id, 'hour', '2020-01-01Z', '${since}', '{project}', 1, 'all' FROM usage.source
       RETURNING backfill_id, source_id
     ), s AS (
       INSERT INTO usage.slice (source_id, backfill_id, group_by, stride, period_start, period_end, scope_ids, workspace_ids)
       SELECT b.source_id, b.backfill_id, 'project', 'hour', at, at + interval '1 hour', ARRAY[c.scope_id], ARRAY[e.external_id]
       FROM b, generate_series(date_trunc('hour', '${since}'::timestamptz) - interval '${DUE} hours', '${since}', interval '1 hour') at,
            (SELECT scope_id, workspace_id FROM usage.scope WHERE group_by = 'project' AND stride = 'hour' LIMIT 1) c
       JOIN usage.entity e ON e.entity_id = c.workspace_id
       RETURNING 1
     ) SELECT count(*) FROM s`,
  );
  let mostRedis = 0;
  for (let i = 0; i < 60; i++) {
    mostRedis = Math.max(mostRedis, await redisMb());
    await pause(250);
  }
  const [first, second, scheduler] = await Promise.all(workers.map(peakMb));
  process.stdout.write(
    `\nwith ${DUE.toLocaleString("en-US")} due slices: Redis ${mostRedis.toFixed(1)} MB, workers ${first} and ${second} MB, scheduler ${scheduler} MB at their peak\n`,
  );
  await inline.close();
  await queued.close();
} finally {
  for (const child of children) child.kill("SIGTERM");
  await Promise.all(children.map(ended));
  client.disconnect();
  await standin.close();
  await redis.close();
  await postgres.close();
}
