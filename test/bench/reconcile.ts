import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { createOutput, table } from "../../src/cli/report/output.ts";
import { runByPsql } from "./floor.ts";
import { hand, median, openDatabases, runChild, startChild, whole, wholes } from "./harness.ts";
import type { Reconcile, Reconciled } from "./measured.ts";
import { NODE_OPTIONS } from "./processes.ts";
import { EXPORT_DAYS, type ExportShape, rowsOf, storeOf, writeExport } from "./reconcile-data.ts";
import type { ExportServerTask } from "./reconcile-server.ts";

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
  .option("--rounds <n>", "rounds; medians are shown", whole, 3)
  // As the program starts.
  .option("--node-option <option...>", "for the measured process", [...NODE_OPTIONS])
  .parse()
  .opts<{ rows?: number[]; exports: number; differingDays: number; rounds: number; nodeOption: string[] }>();

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
try {
  const lines: (string | number)[][] = [];
  for (const rows of options.rows ?? [1_000_000, 5_000_000]) {
    const shape = {
      name: `${rows / 1e6}M`,
      workspaces: 1,
      usersPerWorkspace: Math.ceil(rows / 31),
      everyDays: 1,
      differingDays: options.differingDays,
    };
    lines.push(await measure(shape, join(folder, "export.csv")));
  }
  lines.push(
    await measure({
      name: "small",
      workspaces: options.exports,
      usersPerWorkspace: 4,
      everyDays: 7,
    }),
  );
  process.stdout.write(
    `${table(["shape", "rows", "exports", "s", "floor s", "x", "rows/s", "exports/s", "CPU s", "idle MB", "peak MB"], lines)}\n\n` +
      `Medians of ${options.rounds} rounds; peak of all. Node ${process.version}, ${databases.version} (${databases.settings}), ` +
      `${availableParallelism()} cores shared by all. Floor: psql \\copy of the export, ANALYZE, one FULL JOIN.\n`,
  );
} finally {
  await databases.close();
  rmSync(folder, { recursive: true, force: true });
}

async function measure(shape: ExportShape, file?: string): Promise<(string | number)[]> {
  output.note(`${shape.name}: ${rowsOf(shape).toLocaleString("en-US")} rows`);
  if (file !== undefined) await writeExport(shape, file);
  const serving: ExportServerTask = { shape, file };
  const server = await startChild<{ url: string }>("./reconcile-server.ts", serving);
  const url = await databases.create(storeOf(shape));
  try {
    const found: { floor: number; own: Reconciled }[] = [];
    for (let round = 0; round < options.rounds; round++) {
      await databases.settle(url);
      const runFloor = async () =>
        file === undefined ? Number.NaN : runByPsql(FLOOR, url, file, "csv header");
      const early = round % 2 === 0 ? await runFloor() : undefined;
      const own = await run(url, server.answer.url, shape);
      found.push({ floor: early ?? (await runFloor()), own });
    }
    const seconds = median(found.map(({ own }) => own.ms)) / 1000;
    const name = `reconcile, ${file === undefined ? "exports of 20 rows" : `an export of ${shape.name} rows`}`;
    const ratios = found.map(({ floor, own }) => own.ms / floor);
    const cpu = found.map(({ own }) => own.cpuMs / own.windows);
    const peaks = found.map(({ own }) => own.peakMb);
    if (file === undefined) hand(name, "ms of CPU an export", cpu);
    else hand(name, "psql on the same rows", ratios);
    hand(`${name}, peak memory`, "MB", peaks);
    const windows = found[0]?.own.windows ?? 0;
    return [
      shape.name,
      rowsOf(shape),
      windows,
      seconds.toFixed(2),
      file === undefined ? "" : (median(found.map(({ floor }) => floor)) / 1000).toFixed(2),
      file === undefined ? "" : median(ratios).toFixed(2),
      Math.round(rowsOf(shape) / seconds),
      (windows / seconds).toFixed(1),
      (median(found.map(({ own }) => own.cpuMs)) / 1000).toFixed(2),
      Math.round(median(found.map(({ own }) => own.idleMb))),
      Math.round(Math.max(...peaks)),
    ];
  } finally {
    await databases.drop(url);
    await server.close();
  }
}

async function run(databaseUrl: string, platformUrl: string, shape: ExportShape): Promise<Reconciled> {
  const task: Reconcile = { what: "reconcile", days: EXPORT_DAYS, databaseUrl, platformUrl };
  const found = await runChild<Reconciled>("./measured.ts", task, options.nodeOption);
  const { compared, differences } = found;
  // A fast pass over something else would be no result.
  if (compared !== rowsOf(shape) || differences !== (shape.differingDays ?? 0)) {
    throw new Error(
      `${shape.name}: ${compared} of ${rowsOf(shape)} rows compared, ${differences} differences`,
    );
  }
  return found;
}
