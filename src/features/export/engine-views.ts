import pg from "pg";
import type { View } from "../../core/store/db/views.ts";
import type { Manifest } from "./manifest.ts";

export const ENGINES = ["duckdb", "clickhouse"] as const;
export type Engine = (typeof ENGINES)[number];

interface Shown {
  readonly address: string;
  readonly manifests: readonly Manifest[];
  readonly views: readonly View[];
}

interface EngineView {
  readonly view: View;
  readonly columns: readonly { readonly name: string; readonly type: string; readonly comment: string }[];
  /** The day, by which rows are divided into files, and the source: never null. */
  readonly divided: readonly string[];
}

const quote = pg.escapeIdentifier;
const literal = pg.escapeLiteral;

/**
 * SQL that shows the files of a place as views with the names, columns and comments of Postgres, so that queries run unchanged.
 * The manifests list the files.
 */
export function viewsFor(engine: Engine, { address, manifests, views }: Shown): string {
  const shown = views.flatMap((view) => engineView(view, manifests) ?? []);
  const head = [
    `-- Made by usage-etl files views ${engine}: the files of ${address}`,
    `-- as the views of release ${manifests[0]?.release ?? ""}.`,
  ];
  const sources = manifests.map(({ source_id }) => source_id);
  const lines = engine === "duckdb" ? duckDb(address, sources, shown) : clickHouse(address, sources, shown);
  return [...head, ...lines].join("\n");
}

function engineView(view: View, manifests: readonly Manifest[]): EngineView | undefined {
  const [set] = manifests.flatMap(({ datasets }) => datasets[view.name] ?? []);
  if (set === undefined) return undefined;
  const stored = set.columns.map(({ name }) => name);
  return {
    view,
    columns: view.columns.filter(({ name }) => stored.includes(name)),
    divided: ["usage_date", "source_id"].filter((name) => stored.includes(name)),
  };
}

function duckDb(address: string, sources: readonly string[], views: readonly EngineView[]): string[] {
  const manifests = sources.map((source) => literal(`${address}/manifest/${source}.json`)).join(", ");
  return [
    "-- Run it at the start of each session: it fixes the set of files that all views read, as of one instant for each source.",
    "-- Files of a set stay for a week after it was replaced.",
    "SET TimeZone = 'UTC';",
    "-- A file never changes under its name, so its metadata is kept for the next query.",
    "SET parquet_metadata_cache = true;",
    "CREATE SCHEMA IF NOT EXISTS reporting;",
    "CREATE SCHEMA IF NOT EXISTS reporting_detail;",
    "CREATE OR REPLACE TEMP TABLE usage_etl_file AS",
    `SELECT source_id, as_of, dataset.key AS view, unnest(dataset.value.files, recursive := true)`,
    `FROM (SELECT source_id, as_of, unnest(map_entries(datasets)) AS dataset`,
    `      FROM read_json([${manifests}], maximum_object_size = 1000000000, columns = {`,
    "        source_id: 'VARCHAR', as_of: 'TIMESTAMPTZ', datasets: 'MAP(VARCHAR, STRUCT(files STRUCT(",
    '          path VARCHAR, "month" VARCHAR, "rows" BIGINT, is_final BOOLEAN, coverage VARCHAR[])[]))\'}));',
    ...views.flatMap((one) => ["", ...duckDbView(address, one)]),
  ];
}

function duckDbView(address: string, { view, columns }: EngineView): string[] {
  const name = `${view.schema}.${view.name}`;
  return [
    `SET VARIABLE ${view.name} = (`,
    // The newest files come first, so a query for the latest rows skips the others.
    `  SELECT list(${literal(`${address}/`)} || path ORDER BY "month" DESC) FROM usage_etl_file WHERE view = ${literal(view.name)});`,
    `CREATE OR REPLACE VIEW ${name} AS`,
    `SELECT ${columns.map((column) => quote(column.name)).join(", ")}`,
    `FROM read_parquet(getvariable(${literal(view.name)}), hive_partitioning = false);`,
    `COMMENT ON VIEW ${name} IS ${literal(view.comment)};`,
    ...columns
      .filter(({ comment }) => comment !== "")
      .map((column) => `COMMENT ON COLUMN ${name}.${quote(column.name)} IS ${literal(column.comment)};`),
  ];
}

/**
 * ClickHouse would open every file for each query, so it keeps a copy. The views are filled after the list of files, so all
 * show the same set.
 */
function clickHouse(address: string, sources: readonly string[], views: readonly EngineView[]): string[] {
  return [
    "-- Each view is filled now, and again every day at 06:00 UTC: all of them from the set that was the newest then.",
    "-- Credentials are those of the server.",
    "CREATE DATABASE IF NOT EXISTS reporting;",
    "CREATE DATABASE IF NOT EXISTS reporting_detail;",
    "-- As Postgres reads it. The settings hold for a session: repeat them in each one.",
    "SET join_use_nulls = 1, aggregate_functions_null_for_empty = 1;",
    "CREATE FUNCTION IF NOT EXISTS bool_and AS (condition) -> min(condition);",
    "",
    ...clickHouseFilled(CLICKHOUSE_FILES, CLICKHOUSE_DAILY),
    "ENGINE = MergeTree ORDER BY view AS",
    "SELECT dataset.1 AS view, arrayJoin(JSONExtract(dataset.2, 'files', 'Array(Tuple(path String))').path) AS path",
    "FROM (",
    "  SELECT arrayJoin(JSONExtractKeysAndValuesRaw(json, 'datasets')) AS dataset",
    `  FROM ${clickHouseAt(address, `manifest/{${sources.join(",")}}.json`, "JSONAsString")}`,
    ");",
    ...views.flatMap((one) => ["", ...clickHouseView(address, one)]),
  ];
}

const CLICKHOUSE_FILES = "reporting_detail.usage_etl_file";
/** The service begins to write the files at 05:30 UTC. */
const CLICKHOUSE_DAILY = "REFRESH EVERY 1 DAY OFFSET 6 HOUR";

/** Not every version can replace a refreshable view. */
function clickHouseFilled(name: string, when: string): string[] {
  return [`DROP VIEW IF EXISTS ${name};`, `CREATE MATERIALIZED VIEW ${name} ${when}`];
}

/** ClickHouse treats a backslash in a string as an escape. */
function clickHouseText(text: string): string {
  return `'${text.replace(/[\\']/g, "\\$&")}'`;
}

function clickHouseAt(address: string, path: string, format: string): string {
  const place = address.startsWith("s3://") ? "s3" : "file";
  return `${place}(${literal(`${address}/${path}`)}, ${literal(format)})`;
}

function clickHouseView(address: string, { view, columns, divided }: EngineView): string[] {
  const name = `${view.schema}.${view.name}`;
  return [
    ...clickHouseFilled(name, `${CLICKHOUSE_DAILY} DEPENDS ON ${CLICKHOUSE_FILES}`),
    `ENGINE = MergeTree ORDER BY (${divided.join(", ")}) AS`,
    `SELECT ${columns.map(clickHouseColumn(divided)).join(", ")}`,
    `FROM ${clickHouseAt(address, `${view.name}/*/*.parquet`, "Parquet")}`,
    `WHERE _path IN (SELECT ${literal(`${address.replace(/^s3:\/\//, "")}/`)} || path FROM ${CLICKHOUSE_FILES} WHERE view = ${literal(view.name)})`,
    `COMMENT ${clickHouseText(view.comment)};`,
  ];
}

/** Names and words repeat, unlike ids, so each distinct text is stored once. */
function clickHouseColumn(divided: readonly string[]) {
  return ({ name, type }: EngineView["columns"][number]) => {
    if (divided.includes(name)) {
      const as = type === "date" ? "toDate" : "toLowCardinality";
      return `${as}(assumeNotNull(${quote(name)})) AS ${quote(name)}`;
    }
    const repeats = type === "text" && !name.endsWith("_id");
    return repeats ? `toLowCardinality(${quote(name)}) AS ${quote(name)}` : quote(name);
  };
}
