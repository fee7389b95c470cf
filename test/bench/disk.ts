import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Command } from "commander";
import { table } from "../../src/terminal/output.ts";
import { FLOOR, FLOOR_SETUP, runByPsql, writeRows } from "./floor.ts";
import { hand, openDatabases, runChild, startChild, value } from "./harness.ts";
import type { Load } from "./measured.ts";
import type { ServerTask } from "./server.ts";
import { recordsOf, type Shape, shapes } from "./shapes.ts";

/** `npm run bench:disk`: what Postgres writes. Bytes of WAL and of disk for each million records, loaded, unchanged and restated. */

const options = new Command("bench:disk")
  .option("--records <n>", "records of a load", Number, 1_000_000)
  .parse()
  .opts<{ records: number }>();

const SIZE = `SELECT sum(pg_total_relation_size(oid)) FROM pg_class
  WHERE relnamespace = 'usage'::regnamespace AND relkind IN ('r', 'm')`;

const databases = await openDatabases();
try {
  process.stdout.write(`${await measureLoads()}\n`);
  process.stdout.write(`\n${databases.machine}\n`);
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
    const serving: ServerTask = { shape, more };
    const server = await startChild<{ url: string }>("./server.ts", serving);
    const platformUrl = server.response.url;
    const task: Load = { what: "load", days: shape.days, databaseUrl: url, platformUrl };
    const { wal, disk } = await written(url, shape, () => runChild("./measured.ts", task));
    await server.close();
    rows.push([what, wal, disk]);
    hand(`write-ahead log of a million records, ${what}`, "MB", [wal]);
  }
  await databases.drop(url);
  return table(["a million records", "MB of WAL", "MB of disk"], rows);
}

async function measureFloor(shape: Shape) {
  const file = join(mkdtempSync(join(tmpdir(), "usage-etl-disk-")), "rows");
  await writeRows(shape, file);
  const url = await databases.create(FLOOR_SETUP);
  const found = await written(url, shape, () => runByPsql(FLOOR, url, file));
  await databases.drop(url);
  rmSync(dirname(file), { recursive: true });
  return found;
}

async function written(url: string, shape: Shape, work: () => Promise<unknown>) {
  const before = { wal: await walOf(url), bytes: await value(url, SIZE) };
  await work();
  const millionths = recordsOf(shape);
  return {
    wal: Math.round(((await walOf(url)) - before.wal) / millionths),
    disk: Math.round(((await value(url, SIZE)) - before.bytes) / millionths),
  };
}

function walOf(url: string): Promise<number> {
  return value(url, "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn");
}
