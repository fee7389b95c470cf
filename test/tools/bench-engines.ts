import { once } from "node:events";
import { linkSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join, resolve } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { Command } from "commander";
import pg from "pg";
import { to as copyTo } from "pg-copy-streams";
import { table } from "../../src/cli/report/output.ts";
import { type Engine, viewsFor } from "../../src/pipeline/export/engine-views.ts";
import { type Manifest, manifestName, readManifest } from "../../src/pipeline/export/manifest.ts";
import { openStore } from "../../src/store/db/database.ts";
import { listViews } from "../../src/store/export/views.ts";
import { openPlace } from "../../src/warehouse/place.ts";
import { median, whole } from "../bench/harness.ts";
import { QUESTIONS } from "../bench/views-questions.ts";
import { fillClickHouse, startClickHouse } from "./warehouse.ts";

/**
 * `npm run bench:engines -- --folder FILES`: the questions of `bench:views` that files can answer, put to Postgres, to DuckDB, and to
 * ClickHouse where CHDB_MODULE names npm's `chdb`. FILES are those that `files write` made of the database of DATABASE_URL.
 * `--sources 4` shows them to the engines as those of four organizations: four times the rows.
 */
const options = new Command("bench:engines")
  .requiredOption("--folder <folder>", "what `files write` wrote")
  .option("--sources <n>", "organizations that the engines see", whole, 1)
  .option("--rounds <n>", "warm rounds; medians are shown", whole, 3)
  .option("--only <text>", "only questions with that text in their name")
  .parse()
  .opts<{ folder: string; sources: number; rounds: number; only?: string }>();

const folder = resolve(options.folder);
const copies = mkdtempSync(join(dirname(folder), "usage-etl-engines-"));
const store = openStore({ url: process.env.DATABASE_URL ?? "" });
const client = new pg.Client({ connectionString: process.env.DATABASE_URL });
await client.connect();
try {
  const manifests = await manifestsOf(folder, copies);
  const views = await listViews(store.db);
  const scriptFor = (engine: Engine) => viewsFor(engine, { address: copies, manifests, views });
  const duckDb = await (await DuckDBInstance.create(":memory:")).connect();
  await duckDb.run(scriptFor("duckdb"));
  const clickHouse = startClickHouse();
  if (clickHouse !== undefined) await fillClickHouse(clickHouse, scriptFor("clickhouse"));
  const read = (text: string) =>
    [...text.matchAll(/reporting(?:_detail)?\.(\w+)/g)].map(([, view]) => view ?? "");
  const sets = manifests[0]?.datasets ?? {};
  const asked = QUESTIONS.filter(
    ({ name, view }) => name.includes(options.only ?? "") && read(view).every((one) => one in sets),
  );
  const lines: string[][] = [];
  for (const { name, view } of asked) {
    const ms = [
      await timed(async () => {
        const rows = client.query(copyTo(`COPY (${view}) TO STDOUT`));
        rows.resume();
        await once(rows, "end");
      }),
      await timed(() => duckDb.run(`COPY (${view}) TO '/dev/null' (FORMAT csv)`)),
    ].map((value) => value.toFixed(0));
    if (clickHouse !== undefined) {
      // Some questions use functions that it does not have.
      const answered = timed(() => clickHouse.queryAsync(view, { format: "TSV" }));
      ms.push(
        await answered.then(
          (value) => value.toFixed(0),
          () => "refused",
        ),
      );
    }
    lines.push([name, ...ms]);
  }
  const rows = Object.values(sets)
    .flatMap(({ files }) => files)
    .reduce((sum, file) => sum + file.rows, 0);
  process.stdout.write(
    `${table(["question", "Postgres ms", "DuckDB ms", ...(clickHouse === undefined ? [] : ["ClickHouse ms"])], lines)}\n\n` +
      `Postgres: files of ${rows} rows. Engines: ${rows * options.sources} rows of ${options.sources} sources. ` +
      `Medians of ${options.rounds} warm rounds, ${availableParallelism()} cores.\n`,
  );
} finally {
  rmSync(copies, { recursive: true, force: true });
  await client.end();
  await store.close();
}

/** The files linked once for each source, beside a manifest for each. */
async function manifestsOf(from: string, to: string): Promise<Manifest[]> {
  const manifest = await readManifest(
    await openPlace(from, { signal: new AbortController().signal }),
    "default",
  );
  if (manifest === undefined) throw new Error(`${from} has no ${manifestName("default")}`);
  mkdirSync(join(to, "manifest"));
  return Array.from({ length: options.sources }, (_, at) => {
    const source_id = at === 0 ? "default" : `default-${at + 1}`;
    const datasets = Object.entries(manifest.datasets).map(([name, set]) => {
      const files = set.files.map((file) => {
        const path = file.path.replace("source_id=default/", `source_id=${source_id}/`);
        mkdirSync(dirname(join(to, path)), { recursive: true });
        linkSync(join(from, file.path), join(to, path));
        return { ...file, path };
      });
      return [name, { ...set, files }] as const;
    });
    const copy = { ...manifest, source_id, datasets: Object.fromEntries(datasets) };
    writeFileSync(join(to, manifestName(source_id)), JSON.stringify(copy));
    return copy;
  });
}

/** The first time warms the caches, and is not counted. */
async function timed(ask: () => Promise<unknown>): Promise<number> {
  const ms: number[] = [];
  for (let round = 0; round <= options.rounds; round++) {
    const startedAt = performance.now();
    await ask();
    if (round > 0) ms.push(performance.now() - startedAt);
  }
  return median(ms);
}
