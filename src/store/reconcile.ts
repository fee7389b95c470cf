import type { AnswerCollector } from "../domain/answer.ts";
import type { FetchStamp } from "../domain/coverage.ts";
import type { Window } from "../domain/window.ts";
import { copyRows } from "./copy.ts";
import type { Store, Transaction } from "./database.ts";
import { splitByEvidence } from "./readable.ts";
import { lockScopes } from "./scopes.ts";

export interface ExportedWindow {
  readonly window: Window;
  readonly stamp: FetchStamp;
  readonly scopeIds: readonly number[];
  readonly answer: AnswerCollector;
  /** False where nothing proves the end of the export: then no row may be called missing in it. */
  readonly whole: boolean;
}

export interface Difference {
  readonly scopeId: number;
  /** The platform's id; empty for none. */
  readonly externalId: string;
  /** Epoch milliseconds. */
  readonly bucketStart: number;
  readonly kind: "missing_in_store" | "missing_in_export" | "traces_differ";
  readonly storedTraces: number | null;
  readonly exportTraces: number | null;
}

export interface Comparison {
  /** `outdated`: a newer answer was loaded since the export was asked for; ask again. */
  readonly outcome: "compared" | "outdated";
  /** Distinct keys compared, stored and exported. */
  readonly compared: number;
  readonly differences: readonly Difference[];
  /** Scopes without rows in the export whose workspace nothing shows to be readable: not compared. */
  readonly unverified: readonly number[];
}

/**
 * Holds an export against what is stored for its window, by key, in one set-based statement. Absent and 0 are the same.
 * What is found is kept as an open difference; an open one of the window that is not found again is closed.
 */
export async function compareExport(store: Store, exported: ExportedWindow): Promise<Comparison> {
  return store.transaction(async (transaction) => {
    const { db, client } = transaction;
    const { window, stamp, scopeIds, answer } = exported;
    // Loads of these scopes wait, so that coverage and records are of one moment.
    await lockScopes(db, scopeIds);
    const period = [scopeIds, new Date(window.start).toISOString(), new Date(window.end).toISOString()];
    const newer = await client.query(
      `SELECT FROM usage.coverage
       WHERE scope_id = ANY ($1::integer[]) AND period_start < $3 AND period_end > $2 AND fetch_number > $4 LIMIT 1`,
      [...period, stamp.fetchNumber],
    );
    if (newer.rowCount === 1) return { outcome: "outdated", compared: 0, differences: [], unverified: [] };
    const { readable, unverified } = await splitByEvidence(db, { answer, scopeIds, stamp });
    await stageExport(transaction, exported);
    const { compared, differences } = await findDifferences(transaction, { ...exported, scopeIds: readable });
    await keepDifferences(transaction, { ...exported, scopeIds: readable }, differences);
    return { outcome: "compared", compared, differences, unverified };
  });
}

async function stageExport({ client }: Transaction, { answer, scopeIds }: ExportedWindow): Promise<void> {
  await client.query(`
    CREATE TEMPORARY TABLE IF NOT EXISTS usage_export_key
      (series_id integer, scope_id integer, external_id text) ON COMMIT DELETE ROWS;
    CREATE TEMPORARY TABLE IF NOT EXISTS usage_export_row
      (series_id integer, bucket_start timestamptz, traces bigint) ON COMMIT DELETE ROWS`);
  await client.query(
    `INSERT INTO pg_temp.usage_export_key
     SELECT n - 1, scope_id, external_id
     FROM unnest($1::integer[], $2::text[]) WITH ORDINALITY k (scope_id, external_id, n)`,
    [answer.keys.map((key) => scopeIds[key.workspace]), answer.keys.map((key) => key.dimensionId)],
  );
  await copyRows(client, {
    table: "pg_temp.usage_export_row",
    bucketType: "timestamptz",
    rows: answer.rows(answer.keys.map((_, key) => key)),
  });
}

async function findDifferences(
  { client }: Transaction,
  { window, scopeIds, whole }: ExportedWindow,
): Promise<{ compared: number; differences: Difference[] }> {
  const records =
    window.stride === "hour"
      ? "SELECT series_id, bucket_start, traces FROM usage.hourly_record"
      : "SELECT series_id, bucket_start::timestamp AT TIME ZONE 'UTC' AS bucket_start, traces FROM usage.dated_record";
  const { rows } = await client.query(
    `WITH exported AS (
       SELECT k.scope_id, k.external_id, r.bucket_start, r.traces
       FROM pg_temp.usage_export_row r JOIN pg_temp.usage_export_key k USING (series_id)
       WHERE k.scope_id = ANY ($1::integer[])
     ), stored AS (
       SELECT s.scope_id, e.external_id, r.bucket_start, r.traces
       FROM usage.series s
       JOIN usage.entity e USING (entity_id)
       JOIN (${records}) r USING (series_id)
       WHERE s.scope_id = ANY ($1::integer[]) AND r.bucket_start >= $2::timestamptz AND r.bucket_start < $3::timestamptz
     ), joined AS (
       SELECT scope_id, external_id, bucket_start, stored.traces AS stored, exported.traces AS exported
       FROM stored FULL JOIN exported USING (scope_id, external_id, bucket_start)
     )
     SELECT count(*) OVER () AS unused, j.*, (SELECT count(*) FROM joined) AS compared
     FROM (SELECT 1) one LEFT JOIN joined j
       ON coalesce(j.stored, 0) <> coalesce(j.exported, 0) AND ($4 OR j.exported IS NOT NULL)
     ORDER BY j.scope_id, j.bucket_start, j.external_id`,
    [scopeIds, new Date(window.start).toISOString(), new Date(window.end).toISOString(), whole],
  );
  const found = rows.filter((row) => row.scope_id !== null);
  return {
    compared: rows[0].compared,
    differences: found.map((row) => ({
      scopeId: row.scope_id,
      externalId: row.external_id,
      bucketStart: row.bucket_start.getTime(),
      kind:
        row.stored === null
          ? "missing_in_store"
          : row.exported === null
            ? "missing_in_export"
            : "traces_differ",
      storedTraces: row.stored,
      exportTraces: row.exported,
    })),
  };
}

async function keepDifferences(
  { client }: Transaction,
  { window, stamp, scopeIds, whole }: ExportedWindow,
  found: readonly Difference[],
): Promise<void> {
  const columns = [
    found.map((d) => d.scopeId),
    found.map((d) => d.externalId),
    found.map((d) => new Date(d.bucketStart).toISOString()),
    found.map((d) => d.kind),
    found.map((d) => d.storedTraces),
    found.map((d) => d.exportTraces),
  ];
  if (whole) {
    await client.query(
      `UPDATE usage.reconciliation_difference d SET state = 'closed', closed_at = now()
       WHERE d.state = 'open' AND d.scope_id = ANY ($1::integer[]) AND d.bucket_start >= $2 AND d.bucket_start < $3
         AND NOT EXISTS (
           SELECT FROM unnest($4::integer[], $5::text[], $6::timestamptz[]) f (scope_id, external_id, bucket_start)
           WHERE f.scope_id = d.scope_id AND f.external_id = d.external_id AND f.bucket_start = d.bucket_start
         )`,
      [
        scopeIds,
        new Date(window.start).toISOString(),
        new Date(window.end).toISOString(),
        ...columns.slice(0, 3),
      ],
    );
  }
  await client.query(
    `INSERT INTO usage.reconciliation_difference AS d
       (scope_id, external_id, bucket_start, kind, stored_traces, export_traces, fetch_number)
     SELECT f.*, $7
     FROM unnest($1::integer[], $2::text[], $3::timestamptz[], $4::text[], $5::bigint[], $6::bigint[]) f
     ON CONFLICT (scope_id, bucket_start, external_id) DO UPDATE
     SET kind = excluded.kind, stored_traces = excluded.stored_traces, export_traces = excluded.export_traces,
         fetch_number = excluded.fetch_number, state = 'open', closed_at = NULL,
         found_at = CASE WHEN d.state = 'open' THEN d.found_at ELSE now() END`,
    [...columns, stamp.fetchNumber],
  );
}
