import { HOUR_MS } from "../../domain/time/stride.ts";
import type { Window } from "../../domain/time/window.ts";
import { ExportKeys, type ExportNotes, type ExportRow } from "../../domain/usage/export.ts";
import type { Meter } from "../../domain/usage/meter.ts";
import { dimensionOf } from "../../domain/usage/record.ts";
import type { Requested } from "../../domain/usage/response-keys.ts";
import { copyBatches, copyText } from "../db/copy.ts";
import type { Transaction } from "../db/database.ts";
import { recordTable } from "../load/load-statements.ts";

export interface StagedExport extends Requested {
  readonly sourceId: number;
  readonly meter?: Meter;
  readonly scopeIds: readonly number[];
  readonly mostKeys?: number;
  /** Each call yields all rows from the first. Returns true if the last row has no line end and may be cut. */
  readonly rows: () => AsyncIterable<readonly ExportRow[], unknown>;
}

export interface Stage {
  readonly rows: number;
  readonly traces: number;
  /** True if a key may have several rows in a bucket, which the comparison adds up. */
  readonly isFolded: boolean;
  readonly hasMoreNames: boolean;
  readonly hasEnds: boolean;
  readonly unended: ExportKeys["last"];
  named(): Set<number>;
}

export function tablesOf(stride: Window["stride"]) {
  const { name: records, bucketType } = recordTable(stride);
  const isDate = bucketType === "date";
  return {
    records,
    bucketType,
    staged: isDate ? "pg_temp.usage_export_dated" : "pg_temp.usage_export_hourly",
    bucket: (instant: string) =>
      `${isDate ? `(${instant}::timestamptz AT TIME ZONE 'UTC')` : instant}::${bucketType}`,
    instant: (bucket: string) => (isDate ? `${bucket}::timestamp AT TIME ZONE 'UTC'` : bucket),
  };
}

/** Temporary tables last for the session and are emptied at commit: new ones would bloat the catalogue. */
const temporary = (table: string, columns: string) =>
  `CREATE TEMPORARY TABLE IF NOT EXISTS ${table.replace("pg_temp.", "")} (${columns}) ON COMMIT DELETE ROWS;`;
const CREATE_KEYS =
  temporary(
    "usage_export_keyed",
    "key integer, scope_id integer, external_id text, measure text, series_id integer, name text, name_bucket timestamptz",
  ) +
  temporary(
    "usage_export_found",
    "scope_id integer, external_id text, bucket_start timestamptz, measure text, kind text, stored_traces bigint, export_traces bigint, export_says text",
  );
const CREATE_MANY = temporary(
  "usage_export_many",
  "key integer, scope_id integer, external_id text, measure text, name text, name_hour bigint",
);
const CREATE_NOTES =
  temporary("usage_export_name", "key integer, name text, name_bucket timestamptz") +
  temporary("usage_export_end", "key integer, bucket_start timestamptz, bucket_end timestamptz");

const LARGE = 10_000;

/**
 * Streams an export into temporary tables: rows as numbers, keys and names once each. Memory does not grow with the rows.
 * Throws `ExportError` and errors of reading the rows. The caller then rolls back.
 */
export async function stageExport({ client }: Transaction, staged: StagedExport): Promise<Stage> {
  const { staged: table, bucketType } = tablesOf(staged.window.stride);
  await client.query(
    CREATE_KEYS + temporary(table, `key integer, bucket_start ${bucketType}, traces bigint`),
  );
  const keys = new ExportKeys(staged, staged.mostKeys);
  const batches = staged.rows()[Symbol.asyncIterator]();
  let [hasMoreNames, hasEnds, isLastUnended] = [false, false, false];
  try {
    let isDone = false;
    const untilFull = async function* () {
      while (!keys.isFull) {
        const next = await batches.next();
        if (next.done === true) {
          isDone = true;
          isLastUnended = next.value === true;
          return;
        }
        yield keys.keyed(next.value);
      }
    };
    do {
      await copyBatches(client, { table, idColumn: "key", bucketType, batches: untilFull() });
      const notes = keys.take();
      const names = moreNamesOf(notes);
      hasMoreNames ||= names.length > 0;
      hasEnds ||= notes.ends.length > 0;
      await writeKeys(client, staged, notes);
      if (names.length + notes.ends.length > 0) await writeNotes(client, names, notes);
    } while (!isDone);
  } finally {
    await batches.return?.();
  }
  keys.finish();
  if (keys.rows >= LARGE) await client.query(`ANALYZE ${table}; ANALYZE pg_temp.usage_export_keyed`);
  return {
    rows: keys.rows,
    traces: keys.traces,
    isFolded: !keys.isAscending,
    hasMoreNames,
    hasEnds,
    unended: isLastUnended ? keys.last : undefined,
    named: () => keys.named,
  };
}

/** `$1` is the source, `$2` the dimension. */
const ENTER_KEYS = `
  INSERT INTO pg_temp.usage_export_keyed (key, scope_id, external_id, measure, series_id, name, name_bucket)
  SELECT k.key, k.scope_id, k.external_id, k.measure, s.series_id, k.name, to_timestamp(k.name_hour * 3600)
  FROM pg_temp.usage_export_many k
  LEFT JOIN (
    SELECT entity_id, external_id FROM usage.entity WHERE source_id = $1 AND dimension = $2
  ) e ON e.external_id = k.external_id
  LEFT JOIN usage.series s ON s.scope_id = k.scope_id AND s.entity_id = e.entity_id AND s.measure = k.measure`;

async function writeKeys(
  client: Transaction["client"],
  { sourceId, meter = "traces", groupBy, scopeIds }: StagedExport,
  { first, keys }: ExportNotes,
): Promise<void> {
  if (keys.length === 0) return;
  await client.query(CREATE_MANY);
  await copyText(client, {
    into: "pg_temp.usage_export_many",
    lines: (function* () {
      let number = first;
      for (const key of keys) {
        const scopeId = scopeIds[key.workspace] as number;
        const name = key.names[0];
        yield [number++, scopeId, key.dimensionId, key.measure, name?.name ?? null, name?.lastHour ?? 0];
      }
    })(),
  });
  await client.query("ANALYZE pg_temp.usage_export_many");
  await client.query(ENTER_KEYS, [sourceId, dimensionOf(meter, groupBy)]);
  await client.query("TRUNCATE pg_temp.usage_export_many");
}

function moreNamesOf({ first, keys }: ExportNotes) {
  return keys.flatMap(({ names }, number) =>
    names.slice(1).map(({ name, lastHour }) => ({ key: first + number, name, bucketHour: lastHour })),
  );
}

async function writeNotes(
  client: Transaction["client"],
  names: ReturnType<typeof moreNamesOf>,
  { ends }: ExportNotes,
): Promise<void> {
  await client.query(CREATE_NOTES);
  const toInstant = (bucketHour: number) => new Date(bucketHour * HOUR_MS).toISOString();
  await copyText(client, {
    into: "pg_temp.usage_export_name",
    lines: names.map(({ key, name, bucketHour }) => [key, name, toInstant(bucketHour)]),
  });
  await copyText(client, {
    into: "pg_temp.usage_export_end",
    lines: ends.map(({ key, bucketHour, end }) => [key, toInstant(bucketHour), new Date(end).toISOString()]),
  });
}
