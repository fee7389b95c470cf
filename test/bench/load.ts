import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { createOutput, table } from "../../src/terminal/output.ts";
import { FLOOR, FLOOR_SETUP, runByPsql, writeRows } from "./floor.ts";
import {
  BESIDE_FLOOR,
  besideFloor,
  bothSides,
  openDatabases,
  query,
  type Round,
  runChild,
  startChild,
  whole,
} from "./harness.ts";
import type { Load, Loaded } from "./measured.ts";
import { NODE_OPTIONS } from "./processes.ts";
import type { ServerTask } from "./server.ts";
import { recordsOf, type Shape, shapes, sumOfTraces } from "./shapes.ts";

/**
 * `npm run bench`: records per second from HTTP to committed, and peak memory, beside a floor of psql in the same run, into an empty
 * table and once more into a table that holds the same. The platform, Postgres and the floor are processes of their own; all share
 * the cores of this machine.
 */

const options = new Command("bench")
  .description("HTTP to committed, beside a floor measured in the same run")
  .option("--records <n>", "records of the large shapes", whole, 1_000_000)
  .option("--tasks <n>", "answers of the small shape", whole, 500)
  .option("--rounds <n>", "rounds; medians are shown", whole, 3)
  .option("--shape <name...>", "only these: windows, one, small")
  // As the program starts.
  .option("--node-option <option...>", "for the measured process, such as --cpu-prof", [...NODE_OPTIONS])
  .parse()
  .opts<{ records: number; tasks: number; rounds: number; shape?: string[]; nodeOption: string[] }>();

const TARGETS = ["empty", "unchanged"] as const;

const output = createOutput({ json: false });
const folder = mkdtempSync(join(tmpdir(), "usage-etl-bench-"));
const databases = await openDatabases();
try {
  const lines: (string | number | null)[][] = [];
  for (const shape of shapes(options.records, options.tasks)) {
    if (options.shape !== undefined && !options.shape.includes(shape.name)) continue;
    output.note(`${shape.name}: ${shape.about}`);
    const task: ServerTask = { shape };
    const server = await startChild<{ url: string }>("./server.ts", task);
    try {
      const file = shape.name === "small" ? undefined : join(folder, `${shape.name}.copy`);
      if (file !== undefined) await writeRows(shape, file);
      const rounds: Round<Loaded>[][] = [];
      for (let round = 0; round < options.rounds; round++)
        rounds.push(await measureRound(round, { shape, platformUrl: server.response.url, file }));
      for (const [at, target] of TARGETS.entries()) {
        const own = rounds.flatMap((round) => round[at] ?? []);
        const name = `load, ${shape.about}, ${target === "empty" ? "into an empty table" : "unchanged"}`;
        const counts = { records: recordsOf(shape), responses: own[0]?.own.tasks ?? 0 };
        lines.push([shape.name, target, ...besideFloor(own, { name, unit: "response", ...counts })]);
      }
    } finally {
      await server.close();
    }
  }
  process.stdout.write(
    `${table(["shape", "table", ...BESIDE_FLOOR], lines)}\n\nMedians of ${options.rounds} rounds, interleaved. ${databases.machine}\n` +
      `Floor: psql \\copy of the same rows + MERGE, one transaction, into the same table; "x" is our time over its.\n`,
  );
} finally {
  await databases.close();
  rmSync(folder, { recursive: true, force: true });
}

/** Both sides into an empty table, then both again with the same rows; each side in a database of its own. */
async function measureRound(
  round: number,
  { shape, platformUrl, file }: { shape: Shape; platformUrl: string; file: string | undefined },
): Promise<Round<Loaded>[]> {
  const [floorUrl, loadUrl] = [await databases.create(FLOOR_SETUP), await databases.create()];
  const task: Load = { what: "load", days: shape.days, databaseUrl: loadUrl, platformUrl };
  const load = async (target: (typeof TARGETS)[number]) => {
    const loaded = await runChild<Loaded>("./measured.ts", task, options.nodeOption);
    const done = target === "empty" ? loaded.inserted : loaded.unchanged;
    if (done !== recordsOf(shape))
      throw new Error(`${shape.name}, ${target}: ${done} of ${recordsOf(shape)} records`);
    await check(shape, loadUrl, target);
    return loaded;
  };
  const floor = async () => {
    if (file === undefined) return undefined;
    const ms = await runByPsql(FLOOR, floorUrl, file);
    await check(shape, floorUrl, "floor");
    return ms;
  };
  try {
    const rounds: Round<Loaded>[] = [];
    for (const target of TARGETS) {
      for (const url of [floorUrl, loadUrl]) await databases.settle(url);
      rounds.push(await bothSides(round, floor, () => load(target)));
    }
    return rounds;
  } finally {
    for (const url of [floorUrl, loadUrl]) await databases.drop(url);
  }
}

/** A fast load of something else would be no result. */
async function check(shape: Shape, url: string, what: string): Promise<void> {
  const [found] = await query(
    url,
    "SELECT count(*)::text AS records, coalesce(sum(traces), 0)::text AS traces FROM usage.dated_record",
  );
  const expected = { records: `${recordsOf(shape)}`, traces: `${sumOfTraces(shape)}` };
  if (found?.records === expected.records && found.traces === expected.traces) return;
  throw new Error(`${shape.name}, ${what}: stored ${JSON.stringify(found)}, not ${JSON.stringify(expected)}`);
}
