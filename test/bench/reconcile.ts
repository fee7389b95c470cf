import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { createOutput, table } from "../../src/cli/report/output.ts";
import { startChild } from "./child.ts";
import { type Databases, openDatabases } from "./databases.ts";
import { runByPsql } from "./floor.ts";
import { hand, measureOf, median } from "./measures.ts";
import { type ExportShape, rowsOf, storeOf, writeExport } from "./reconcile-data.ts";
import type { ExportServerAnswer, ExportServerTask } from "./reconcile-server.ts";
import type { ReconcilerAnswer, ReconcilerTask } from "./reconciler.ts";
import { NODE_OPTIONS } from "./scale-process.ts";

/**
 * `npm run bench:reconcile`: an export held against the store, from the request to the commit, beside psql doing the same to a file
 * (`\copy`, ANALYZE, one FULL JOIN) in the same run; and many small exports. Everything shares the cores of this machine.
 */

interface Options {
  readonly rows: number[];
  readonly exports: number;
  readonly differingDays: number;
  readonly rounds: number;
  readonly nodeOption: string[];
}

const count = (text: string): number => {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw new InvalidArgumentError("It is not a whole number.");
  return value;
};
const options = new Command("bench:reconcile")
  .option("--rows <n...>", "rows of the large exports", (text, all: number[] = []) => [...all, count(text)])
  .option("--exports <n>", "exports of twenty rows", count, 500)
  .option(
    "--differing-days <n>",
    "days of the large exports on which one record of the store differs",
    Number,
    0,
  )
  .option("--rounds <n>", "rounds; medians are shown", count, 3)
  // As the program starts.
  .option("--node-option <option...>", "for the measured process", [...NODE_OPTIONS])
  .parse()
  .opts<Options>();

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
    lines.push(await measure(databases, shape, join(folder, "export.csv")));
  }
  lines.push(
    await measure(databases, {
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

async function measure(on: Databases, shape: ExportShape, file?: string): Promise<(string | number)[]> {
  output.note(`${shape.name}: ${rowsOf(shape).toLocaleString("en-US")} rows`);
  if (file !== undefined) await writeExport(shape, file);
  const server = await startChild<ExportServerAnswer>("./reconcile-server.ts", {
    shape,
    ...(file === undefined ? {} : { file }),
  } satisfies ExportServerTask);
  const url = await on.create(storeOf(shape));
  try {
    const found: { floor: number; own: ReconcilerAnswer }[] = [];
    for (let round = 0; round < options.rounds; round++) {
      await on.settle(url);
      const runFloor = async () =>
        file === undefined ? Number.NaN : runByPsql(FLOOR, url, file, "csv header");
      const early = round % 2 === 0 ? await runFloor() : undefined;
      const own = await run({ databaseUrl: url, platformUrl: server.answer.url }, shape);
      found.push({ floor: early ?? (await runFloor()), own });
    }
    const seconds = median(found.map(({ own }) => own.ms)) / 1000;
    const name = `reconcile, ${file === undefined ? "exports of 20 rows" : `an export of ${shape.name} rows`}`;
    hand([
      file === undefined
        ? measureOf(
            name,
            "ms of CPU an export",
            found.map(({ own }) => own.cpuMs / own.windows),
          )
        : measureOf(
            name,
            "psql on the same rows",
            found.map(({ floor, own }) => own.ms / floor),
          ),
      measureOf(
        `${name}, peak memory`,
        "MB",
        found.map(({ own }) => own.peakMb),
      ),
    ]);
    const [
      {
        own: { windows },
      },
    ] = found as [(typeof found)[number]];
    return [
      shape.name,
      rowsOf(shape),
      windows,
      seconds.toFixed(2),
      file === undefined ? "" : (median(found.map(({ floor }) => floor)) / 1000).toFixed(2),
      file === undefined ? "" : median(found.map(({ floor, own }) => own.ms / floor)).toFixed(2),
      Math.round(rowsOf(shape) / seconds),
      (windows / seconds).toFixed(1),
      (median(found.map(({ own }) => own.cpuMs)) / 1000).toFixed(2),
      Math.round(median(found.map(({ own }) => own.idleMb))),
      Math.round(Math.max(...found.map(({ own }) => own.peakMb))),
    ];
  } finally {
    await on.drop(url);
    await server.close();
  }
}

async function run(task: ReconcilerTask, shape: ExportShape): Promise<ReconcilerAnswer> {
  const child = await startChild<ReconcilerAnswer>("./reconciler.ts", task, options.nodeOption);
  await child.close();
  const { compared, differences } = child.answer;
  // A fast pass over something else would be no result.
  if (compared !== rowsOf(shape) || differences !== (shape.differingDays ?? 0)) {
    throw new Error(
      `${shape.name}: ${compared} of ${rowsOf(shape)} rows compared, ${differences} differences`,
    );
  }
  return child.answer;
}
