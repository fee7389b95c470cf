import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { createOutput, table } from "../../src/cli/report/output.ts";
import { FLOOR, FLOOR_SETUP, runByPsql, writeRows } from "./floor.ts";
import { hand, median, openDatabases, query, runChild, startChild, whole } from "./harness.ts";
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

const HEAD = [
  "shape",
  "table",
  "records",
  "answers",
  "s",
  "floor s",
  "x",
  "records/s",
  "answers/s",
  "CPU s",
  "idle MB",
  "peak MB",
];
const TARGETS = ["empty", "unchanged"] as const;

interface Round {
  readonly target: (typeof TARGETS)[number];
  /** Undefined where there is nothing to hold the load against. */
  readonly floorMs: number | undefined;
  readonly load: Loaded;
}

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
      const rounds: Round[] = [];
      for (let round = 0; round < options.rounds; round++) {
        rounds.push(...(await measureRound(shape, server.answer.url, { file, loadFirst: round % 2 === 1 })));
      }
      for (const target of TARGETS) {
        const own = rounds.filter((one) => one.target === target);
        handOn(shape, own);
        lines.push(lineOf(shape, own));
      }
    } finally {
      await server.close();
    }
  }
  process.stdout.write(
    `${table(HEAD, lines)}\n\nMedians of ${options.rounds} rounds, interleaved. Node ${process.version}, ${databases.version} (${databases.settings}), ${availableParallelism()} cores shared by all.\n` +
      `Floor: psql \\copy of the same rows + MERGE, one transaction, into the same table; "x" is our time over its.\n`,
  );
} finally {
  await databases.close();
  rmSync(folder, { recursive: true, force: true });
}

/** Both sides into an empty table, then both again with the same rows; each side in a database of its own. */
async function measureRound(
  shape: Shape,
  platformUrl: string,
  { file, loadFirst }: { file: string | undefined; loadFirst: boolean },
): Promise<Round[]> {
  const [floorUrl, loadUrl] = [await databases.create(FLOOR_SETUP), await databases.create()];
  const task: Load = { what: "load", days: shape.days, databaseUrl: loadUrl, platformUrl };
  const load = async (target: Round["target"]) => {
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
    const rounds: Round[] = [];
    for (const target of TARGETS) {
      for (const url of [floorUrl, loadUrl]) await databases.settle(url);
      const early = loadFirst ? await load(target) : undefined;
      const floorMs = await floor();
      rounds.push({ target, floorMs, load: early ?? (await load(target)) });
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

/** The rounds' own ratios: both sides of one meet the same moods of the machine. */
function ratiosOf(rounds: readonly Round[]): number[] {
  return rounds.flatMap(({ floorMs, load }) => (floorMs === undefined ? [] : [load.ms / floorMs]));
}

/** What is held against the release before. */
function handOn(shape: Shape, rounds: readonly Round[]): void {
  const name = `load, ${shape.about}, ${rounds[0]?.target === "empty" ? "into an empty table" : "unchanged"}`;
  const ratios = ratiosOf(rounds);
  const cpu = rounds.map(({ load }) => load.cpuMs / load.tasks);
  if (ratios.length > 0) hand(name, "psql on the same rows", ratios);
  else hand(name, "ms of CPU an answer", cpu);
  const peaks = rounds.map(({ load }) => load.peakMb);
  hand(`${name}, peak memory`, "MB", peaks);
}

/** Medians over the rounds of one shape and target. */
function lineOf(shape: Shape, rounds: readonly Round[]): (string | number | null)[] {
  const middle = (of: (load: Loaded) => number) => median(rounds.map(({ load }) => of(load)));
  const seconds = middle(({ ms }) => ms) / 1000;
  const answers = rounds[0]?.load.tasks ?? 0;
  const ratios = ratiosOf(rounds);
  const floor = median(rounds.map(({ floorMs }) => (floorMs ?? 0) / 1000));
  return [
    shape.name,
    rounds[0]?.target ?? "",
    recordsOf(shape),
    answers,
    seconds.toFixed(2),
    ratios.length === 0 ? null : floor.toFixed(2),
    ratios.length === 0 ? null : median(ratios).toFixed(2),
    Math.round(recordsOf(shape) / seconds),
    (answers / seconds).toFixed(answers / seconds < 10 ? 1 : 0),
    (middle(({ cpuMs }) => cpuMs) / 1000).toFixed(2),
    Math.round(middle(({ idleMb }) => idleMb)),
    // The highest of the rounds: a bound is kept always or not at all.
    Math.round(Math.max(...rounds.map(({ load }) => load.peakMb))),
  ];
}
