import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Command } from "commander";
import { table } from "../../src/cli/report/output.ts";
import { resolveRedis } from "../../src/local/servers/resolve.ts";
import { startStandin } from "../../src/local/standin/server.ts";
import { FLOOR, FLOOR_SETUP, runByPsql, writeRows } from "./floor.ts";
import { hand, openDatabases, query, runChild, startChild, value } from "./harness.ts";
import type { Load } from "./measured.ts";
import { startService } from "./processes.ts";
import type { ServerTask } from "./server.ts";
import { recordsOf, type Shape, shapes } from "./shapes.ts";

/**
 * `npm run bench:disk`: what Postgres writes. Bytes of WAL and of disk for each million records, loaded, unchanged and restated;
 * then what a number of syncs leaves in each table. The local server's autovacuum comes once an hour and syncs come every two
 * seconds here, so that tables are vacuumed after every tenth sync; at a sync every 15 minutes autovacuum comes after each.
 */

const options = new Command("bench:disk")
  .option("--records <n>", "records of a load", Number, 1_000_000)
  .option("--syncs <n>", "syncs of a service, one every two seconds; 96 are a day of them", Number, 96)
  .parse()
  .opts<{ records: number; syncs: number }>();

const HOUR_MS = 3_600_000;
const CHANGES_A_SYNC = 20;
const SIZE = `SELECT sum(pg_total_relation_size(oid)) FROM pg_class
  WHERE relnamespace = 'usage'::regnamespace AND relkind IN ('r', 'm')`;
const TABLES = `SELECT relname AS name, pg_total_relation_size(relid) AS bytes, n_live_tup AS live, n_dead_tup AS dead
  FROM pg_stat_user_tables WHERE schemaname = 'usage' ORDER BY relname`;

const databases = await openDatabases();
try {
  if (options.records > 0) process.stdout.write(`${await measureLoads()}\n`);
  if (options.syncs > 0) process.stdout.write(`\n${await measureSyncs()}\n`);
  process.stdout.write(`\n${databases.version} (${databases.settings}), ${await walSettings()}.\n`);
} finally {
  await databases.close();
}

async function measureLoads(): Promise<string> {
  const [shape] = shapes(options.records, 1) as [Shape, ...Shape[]];
  const url = await databases.create();
  const floor = await measureFloor(shape);
  const rows: (string | number)[][] = [
    ["psql with the same rows, into an empty table", floor.wal, floor.disk],
  ];
  for (const [what, more] of [
    ["into an empty table", 0],
    ["unchanged", 0],
    ["every count restated", 1],
  ] as const) {
    const serving: ServerTask = { shape, gzip: false, more };
    const server = await startChild<{ url: string }>("./server.ts", serving);
    const platformUrl = server.answer.url;
    const task: Load = { what: "load", days: shape.days, databaseUrl: url, platformUrl };
    const { wal, disk } = await written(url, shape, () => runChild("./measured.ts", task));
    await server.close();
    rows.push([what, wal, disk]);
    hand(`write-ahead log of a million records, ${what}`, "MB", [wal]);
  }
  await databases.drop(url);
  return table(["a million records", "MB of WAL", "MB of disk"], rows);
}

/** The same rows by psql, in one MERGE. */
async function measureFloor(shape: Shape) {
  const file = join(mkdtempSync(join(tmpdir(), "usage-etl-disk-")), "rows");
  await writeRows(shape, file);
  const url = await databases.create(FLOOR_SETUP);
  const found = await written(url, shape, () => runByPsql(FLOOR, url, file));
  await databases.drop(url);
  rmSync(dirname(file), { recursive: true });
  return found;
}

/** MB of WAL and of disk for each million records, of `work`. */
async function written(url: string, shape: Shape, work: () => Promise<unknown>) {
  const before = { wal: await walOf(url), bytes: await value(url, SIZE) };
  await work();
  const millionths = recordsOf(shape);
  return {
    wal: Math.round(((await walOf(url)) - before.wal) / millionths),
    disk: Math.round(((await value(url, SIZE)) - before.bytes) / millionths),
  };
}

async function measureSyncs(): Promise<string> {
  const url = await databases.create();
  const redis = await resolveRedis();
  const standin = await startStandin();
  const service = startService({
    DATABASE_URL: url,
    REDIS_URL: redis.url,
    USAGE_BASE_URL: standin.url,
    USAGE_API_KEY: standin.apiKey,
    USAGE_RATE_LIMIT: "1000000",
    USAGE_SYNC_EVERY: "PT2S",
    USAGE_HOURLY_FOR: "P45D",
  });
  try {
    const syncs = () =>
      value(url, "SELECT count(*) FROM usage.run WHERE kind = 'sync' AND outcome IS NOT NULL");
    const waiting = "SELECT count(*) FROM usage.fetch_task WHERE state IN ('waiting', 'queued')";
    while ((await syncs()) === 0 || (await value(url, waiting)) > 0) await pause(500);
    const before = { wal: await walOf(url), tables: await query(url, TABLES), syncs: await syncs() };
    let done = 0;
    let place = 0;
    while (done < options.syncs) {
      for (let i = 0; i < CHANGES_A_SYNC; i++) {
        const { streams } = standin.organisation;
        const { project, user, key } = streams[place++ % streams.length] as (typeof streams)[number];
        standin.ledger.change({ project, user, key, at: Date.now() - (place % 48) * HOUR_MS }, 1);
      }
      await pause(2_000);
      const before10 = Math.floor(done / 10);
      done = (await syncs()) - before.syncs;
      if (Math.floor(done / 10) > before10) await query(url, "VACUUM (SKIP_LOCKED)");
    }
    // Statistics of a session are told to others once it has been idle for a while.
    await pause(2_000);
    const wal = (await walOf(url)) - before.wal;
    const tables = await query(url, TABLES);
    const rows = tables.flatMap((now, i) => {
      const then = before.tables[i];
      const grown = Number(now.bytes) - Number(then?.bytes);
      if (Number(now.bytes) < 200_000 && grown < 100_000) return [];
      return [[now.name ?? "", kb(then?.bytes), kb(now.bytes), now.live ?? 0, now.dead ?? 0]];
    });
    return `${table(["table", "kB before", "kB after", "live rows", "dead rows"], rows)}\n${done} syncs, each with ${CHANGES_A_SYNC} changed counts: ${(wal / done / 1e6).toFixed(2)} MB of WAL a sync.`;
  } finally {
    await service.close();
    await standin.close();
    await redis.close();
    await databases.drop(url);
  }
}

function kb(bytes: unknown): number {
  return Math.round(Number(bytes) / 1_000);
}

function walOf(url: string): Promise<number> {
  return value(url, "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn");
}

async function walSettings(): Promise<string> {
  const url = await databases.create();
  const names = ["full_page_writes", "wal_level", "wal_compression"];
  const rows = await query(
    url,
    `SELECT name, setting FROM pg_settings WHERE name IN ('${names.join("', '")}') ORDER BY name`,
  );
  await databases.drop(url);
  return rows.map(({ name, setting }) => `${name} ${setting}`).join(", ");
}
