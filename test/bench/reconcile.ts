import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { createOutput, table } from "../../src/terminal/output.ts";
import { runByPsql } from "./floor.ts";
import {
  BESIDE_FLOOR,
  besideFloor,
  bothSides,
  median,
  openDatabases,
  type Round,
  runChild,
  startChild,
  whole,
  wholes,
} from "./harness.ts";
import type { Reconcile, Reconciled } from "./measured.ts";
import { NODE_OPTIONS } from "./processes.ts";
import { storeOf, writeExport } from "./reconcile-data.ts";
import type { ServerTask } from "./server.ts";
import { recordsOf, type Shape, WINDOW_DAYS } from "./shapes.ts";

/**
 * `npm run bench:reconcile`: an export held against the store, from the request to the commit, beside psql doing the same to a file
 * (`\copy`, ANALYZE, one FULL JOIN) in the same run; and many small exports. Everything shares the cores of this machine.
 */

const options = new Command("bench:reconcile")
  .option("--rows <n...>", "rows of the large exports", wholes)
  .option("--exports <n>", "exports of twenty rows", whole, 500)
  .option(
    "--differing-days <n>",
    "days of the large exports on which one record of the store differs",
    Number,
    0,
  )
  .option("--csv-parse", "each export once more, read by csv-parse alone")
  .option("--rounds <n>", "rounds; medians are shown", whole, 3)
  .option("--node-option <option...>", "for the measured process", [...NODE_OPTIONS])
  .parse()
  .opts<{
    rows?: number[];
    exports: number;
    differingDays: number;
    csvParse?: true;
    rounds: number;
    nodeOption: string[];
  }>();

const FLOOR = {
  before: [
    "BEGIN",
    `CREATE TEMPORARY TABLE stage (bucket_start timestamptz, bucket_end timestamptz, workspace_id text, workspace_name text,
       project_id text, project_name text, user_id text, user_email text, short_key text, traces bigint) ON COMMIT DROP`,
  ],
  after: [
    "ANALYZE stage",
    `SELECT count(*) FROM (
       SELECT e.external_id AS user_id, r.bucket_start::timestamp AT TIME ZONE 'UTC' AS bucket_start, r.traces
       FROM usage.dated_record r JOIN usage.series USING (series_id) JOIN usage.entity e USING (entity_id)
     ) stored FULL JOIN stage USING (user_id, bucket_start) WHERE stored.traces IS DISTINCT FROM stage.traces`,
    "COMMIT",
  ],
};

const output = createOutput({ json: false });
const folder = mkdtempSync(join(tmpdir(), "usage-etl-bench-"));
const databases = await openDatabases();
const cpuLines: (string | number)[][] = [];
try {
  const lines: (string | number | null)[][] = [];
  for (const rows of options.rows ?? [1_000_000, 5_000_000]) {
    const name = `${rows / 1e6}M`;
    const shape: Shape = {
      name,
      about: `an export of ${name} rows`,
      workspaces: 1,
      usersPerWorkspace: Math.ceil(rows / WINDOW_DAYS),
      days: WINDOW_DAYS,
      everyDays: 1,
      differingDays: options.differingDays,
    };
    lines.push(await measure(shape, join(folder, "export.csv")));
  }
  const small = { workspaces: options.exports, usersPerWorkspace: 4, days: WINDOW_DAYS, everyDays: 7 };
  lines.push(await measure({ name: "small", about: "exports of 20 rows", ...small }));
  process.stdout.write(
    `${table(["shape", ...BESIDE_FLOOR], lines)}\n\n` +
      `Medians of ${options.rounds} rounds; peak of all. ${databases.machine} Floor: psql \\copy of the export, ANALYZE, one FULL JOIN.\n`,
  );
  if (options.csvParse === true)
    process.stdout.write(`\n${table(["shape", "CPU s", "by csv-parse alone", "x"], cpuLines)}\n`);
} finally {
  await databases.close();
  rmSync(folder, { recursive: true, force: true });
}

async function measure(shape: Shape, file?: string): Promise<(string | number | null)[]> {
  output.note(`${shape.name}: ${recordsOf(shape).toLocaleString("en-US")} rows`);
  if (file !== undefined) await writeExport(shape, file);
  const serving: ServerTask = { shape, exports: { file } };
  const server = await startChild<{ url: string }>("./server.ts", serving);
  const url = await databases.create(storeOf(shape));
  const floor = async () => (file === undefined ? undefined : runByPsql(FLOOR, url, file, "csv header"));
  try {
    const rounds: Round<Reconciled>[] = [];
    const slow: Reconciled[] = [];
    for (let round = 0; round < options.rounds; round++) {
      await databases.settle(url);
      rounds.push(await bothSides(round, floor, () => run(url, server.response.url, shape)));
      if (options.csvParse === true) slow.push(await run(url, server.response.url, shape, true));
    }
    if (slow.length > 0) cpuLines.push([shape.name, ...cpuOfBoth(rounds, slow)]);
    const counts = { records: recordsOf(shape), responses: rounds[0]?.own.windows ?? 0 };
    const line = besideFloor(rounds, { name: `reconcile, ${shape.about}`, unit: "export", ...counts });
    return [shape.name, ...line];
  } finally {
    await databases.drop(url);
    await server.close();
  }
}

function cpuOfBoth(rounds: readonly Round<Reconciled>[], slow: readonly Reconciled[]): (string | number)[] {
  const own = rounds.map((round) => round.own.wholeCpuMs);
  const other = slow.map(({ wholeCpuMs }) => wholeCpuMs);
  const ratio = median(other.map((ms, i) => ms / (own[i] as number)));
  return [(median(own) / 1000).toFixed(2), (median(other) / 1000).toFixed(2), ratio.toFixed(2)];
}

async function run(
  databaseUrl: string,
  platformUrl: string,
  shape: Shape,
  byCsvParse = false,
): Promise<Reconciled> {
  const task: Reconcile = { what: "reconcile", days: shape.days, byCsvParse, databaseUrl, platformUrl };
  const found = await runChild<Reconciled>("./measured.ts", task, options.nodeOption);
  const { compared, differences } = found;
  // A fast pass over something else would be no result.
  if (compared !== recordsOf(shape) || differences !== (shape.differingDays ?? 0)) {
    throw new Error(
      `${shape.name}: ${compared} of ${recordsOf(shape)} rows compared, ${differences} differences`,
    );
  }
  return found;
}
