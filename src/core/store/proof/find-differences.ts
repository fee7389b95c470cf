import type { Window } from "../../domain/time/window.ts";
import { ExportError } from "../../domain/usage/export.ts";
import type { Transaction } from "../db/database.ts";
import { type Stage, tablesOf } from "./export-stage.ts";

interface Compared {
  readonly window: Window;
  readonly scopeIds: readonly number[];
  readonly whole: boolean;
  readonly stage: Stage;
}

/**
 * Compares the staged export with the stored records by key, and writes one row for each scope, bucket, id and measure to
 * pg_temp.usage_export_found. An absent row equals 0. If an id differs in several ways in a bucket, the first one counts:
 * amounts, then the bucket's end, then the name.
 */
export async function findDifferences(
  { client }: Transaction,
  compared: Compared,
): Promise<{ compared: number; found: number }> {
  const { window, scopeIds, whole, stage } = compared;
  const sql = statements(window.stride, stage);
  const within = [scopeIds, new Date(window.start).toISOString(), new Date(window.end).toISOString(), whole];
  const { rows } = await client.query<{ stored: number; found: number; unstored: number }>(
    sql.counts,
    within,
  );
  const { stored = 0, found = 0, unstored = 0 } = rows[0] ?? {};
  // Ends come before names: the first difference found for a key is kept.
  const ends = stage.hasEnds ? await client.query(sql.ends, [scopeIds]) : undefined;
  const names = await client.query(sql.names, [scopeIds]);
  if (stage.unended !== undefined) await refuseCutRow(client, stage.unended);
  return { compared: stored + unstored, found: found + (ends?.rowCount ?? 0) + (names.rowCount ?? 0) };
}

/**
 * Accepts a last row without a line end if it agrees with the stored record. If the row differs, its number may have lost
 * digits: then the export counts as cut, and this throws `ExportError`.
 */
async function refuseCutRow(
  client: Transaction["client"],
  { key, bucketHour, line }: NonNullable<Stage["unended"]>,
): Promise<void> {
  const { rowCount } = await client.query(
    `SELECT FROM pg_temp.usage_export_found f JOIN pg_temp.usage_export_keyed k USING (scope_id, external_id)
     WHERE k.key = $1 AND f.bucket_start = to_timestamp($2::bigint * 3600)`,
    [key, bucketHour],
  );
  if (rowCount === 0) return;
  const message = `line ${line}, the last one, has no line end and differs from what is stored: it may be cut`;
  throw new ExportError("response_cut", message);
}

function statements(stride: Window["stride"], { isFolded, hasMoreNames }: Stage) {
  const { records, staged, bucket, instant } = tablesOf(stride);
  const stored = `
    SELECT r.series_id, r.bucket_start, r.traces
    FROM usage.series s JOIN ${records} r USING (series_id)
    WHERE s.scope_id = ANY ($1::integer[]) AND r.bucket_start >= ${bucket("$2")} AND r.bucket_start < ${bucket("$3")}`;
  // An id without a series uses its negative key number instead of a series id.
  const exported = isFolded
    ? `SELECT coalesce(k.series_id, -k.first_key) AS series_id, r.bucket_start, sum(r.traces)::bigint AS traces
       FROM ${staged} r
       JOIN (
         SELECT key, scope_id, series_id, min(key) OVER (PARTITION BY scope_id, external_id, measure) AS first_key
         FROM pg_temp.usage_export_keyed
       ) k ON k.key = r.key
       WHERE k.scope_id = ANY ($1::integer[])
       GROUP BY 1, 2`
    : `SELECT coalesce(k.series_id, -k.key) AS series_id, r.bucket_start, r.traces
       FROM ${staged} r JOIN pg_temp.usage_export_keyed k ON k.key = r.key
       WHERE k.scope_id = ANY ($1::integer[])`;
  const notFound = (from: string) => `NOT EXISTS (
    SELECT FROM pg_temp.usage_export_found f
    WHERE f.scope_id = k.scope_id AND f.external_id = k.external_id AND f.bucket_start = ${from}.bucket_start)`;
  const columns =
    "(scope_id, external_id, bucket_start, measure, kind, stored_traces, export_traces, export_says)";
  return {
    counts: `
      WITH exported AS (${exported}), stored AS (${stored}), stored_keys AS (${stored}), differing AS (
        SELECT series_id, bucket_start, stored.traces AS stored, exported.traces AS exported
        FROM stored FULL JOIN exported USING (series_id, bucket_start)
        WHERE coalesce(stored.traces, 0) <> coalesce(exported.traces, 0)
          -- Without a proven end, rows may be missing: of a key with several rows, a part of its sum.
          AND ($4::boolean OR ${isFolded ? "exported.traces > coalesce(stored.traces, 0)" : "exported.traces IS NOT NULL"})
      ), found AS (
      INSERT INTO pg_temp.usage_export_found ${columns}
      SELECT coalesce(s.scope_id, k.scope_id), coalesce(e.external_id, k.external_id), ${instant("d.bucket_start")},
             coalesce(s.measure, k.measure),
             CASE WHEN d.stored IS NULL THEN 'missing_in_store' WHEN d.exported IS NULL THEN 'missing_in_export'
                  ELSE 'traces_differ' END,
             d.stored, d.exported, NULL
      FROM differing d
      LEFT JOIN usage.series s ON s.series_id = d.series_id
      LEFT JOIN usage.entity e ON e.entity_id = s.entity_id
      LEFT JOIN pg_temp.usage_export_keyed k ON k.key = -d.series_id
      RETURNING kind
      )
      SELECT (SELECT count(*) FROM stored_keys) AS stored, count(*) AS found,
             count(*) FILTER (WHERE kind = 'missing_in_store') AS unstored
      FROM found`,
    ends: `
      INSERT INTO pg_temp.usage_export_found ${columns}
      SELECT DISTINCT ON (k.scope_id, k.external_id, n.bucket_start)
             k.scope_id, k.external_id, n.bucket_start, k.measure, 'bucket_end_differs', r.traces, r.traces,
             to_char(n.bucket_end AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
      FROM pg_temp.usage_export_end n
      JOIN pg_temp.usage_export_keyed k USING (key)
      LEFT JOIN ${records} r ON r.series_id = k.series_id AND r.bucket_start = ${bucket("n.bucket_start")}
      WHERE k.scope_id = ANY ($1::integer[]) AND ${notFound("n")}
      ORDER BY 1, 2, 3, n.bucket_end, k.measure`,
    // One row for each scope and id: the latest bucket with an unknown name.
    names: `
      INSERT INTO pg_temp.usage_export_found ${columns}
      SELECT DISTINCT ON (k.scope_id, k.external_id)
             k.scope_id, k.external_id, n.bucket_start, k.measure, 'name_differs', r.traces, r.traces, n.name
      FROM (
        SELECT key, name, name_bucket AS bucket_start FROM pg_temp.usage_export_keyed WHERE name IS NOT NULL
        ${hasMoreNames ? "UNION ALL SELECT key, name, name_bucket FROM pg_temp.usage_export_name" : ""}
      ) n
      JOIN pg_temp.usage_export_keyed k USING (key)
      JOIN usage.series s USING (series_id)
      LEFT JOIN ${records} r ON r.series_id = k.series_id AND r.bucket_start = ${bucket("n.bucket_start")}
      WHERE k.scope_id = ANY ($1::integer[]) AND ${notFound("n")} AND NOT EXISTS (
        SELECT FROM usage.entity_name known
        WHERE known.entity_id = s.entity_id AND known.name = n.name
      )
      ORDER BY 1, 2, n.bucket_start DESC, n.name, k.measure`,
  };
}
