import type { Stride } from "../../domain/time/stride.ts";
import { keepMonthsOf } from "./month-totals.ts";

/** The statements of a load, for one of the two record tables. `$1` is the scopes, `$2` and `$3` the window's ends. */
export interface RecordTable {
  readonly name: string;
  readonly stage: string;
  readonly bucketType: "timestamptz" | "date";
  readonly createStage: string;
  readonly stageChanges: string;
  /** `$4` is whether zeros delete too. */
  readonly countChanges: string;
  /** `$1` is the fetch number. */
  readonly keepRestatements: string;
  /** The same of final zeros that were withdrawn. */
  readonly keepWithdrawn: string;
  /** `$1` is the fetch's time, `$2` the age classes in hours, ascending. */
  readonly lateChanges: string;
  readonly mergeChanges: string;
}

/** The table for records of a stride: hours by instant, all others by the UTC day on which their bucket starts. */
export function recordTable(stride: Stride): RecordTable {
  return stride === "hour" ? HOURLY : DATED;
}

/** Length of a bucket of the scope `p`. Weeks and longer buckets do not measure lateness. */
const BUCKET_LENGTH = "CASE p.stride WHEN 'hour' THEN interval '1 hour' ELSE interval '1 day' END";

const HOURLY = statements("usage.hourly_record", "timestamptz");
const DATED = statements("usage.dated_record", "date");

function statements(name: string, bucketType: "timestamptz" | "date"): RecordTable {
  const isDate = bucketType === "date";
  const stage = isDate ? "pg_temp.usage_stage_dated" : "pg_temp.usage_stage_hourly";
  const change = isDate ? "pg_temp.usage_change_dated" : "pg_temp.usage_change_hourly";
  const [stageName, changeName] = [stage, change].map((table) => table.replace("pg_temp.", ""));
  const at = (parameter: string) =>
    isDate ? `(${parameter}::timestamptz AT TIME ZONE 'UTC')::date` : `${parameter}::timestamptz`;
  const instant = (column: string) => (isDate ? `${column}::timestamp AT TIME ZONE 'UTC'` : column);
  const stored = `
    SELECT r.series_id, r.bucket_start, r.traces, s.scope_id
    FROM usage.series s JOIN ${name} r ON r.series_id = s.series_id
    WHERE s.scope_id = ANY ($1::integer[]) AND r.bucket_start >= ${at("$2")} AND r.bucket_start < ${at("$3")}`;
  return {
    name,
    stage,
    bucketType,
    // They last for the session and are emptied at commit: a new table for each load would bloat the system catalogue.
    createStage: `
      CREATE TEMPORARY TABLE IF NOT EXISTS ${stageName}
        (series_id integer, bucket_start ${bucketType}, traces bigint) ON COMMIT DELETE ROWS;
      CREATE TEMPORARY TABLE IF NOT EXISTS ${changeName}
        (series_id integer, bucket_start ${bucketType}, scope_id integer, old_traces bigint, new_traces bigint)
        ON COMMIT DELETE ROWS`,
    stageChanges: `
      INSERT INTO ${change} (series_id, bucket_start, scope_id, old_traces, new_traces)
      SELECT series_id, bucket_start, r.scope_id, r.traces, n.traces
      FROM ${stage} n FULL JOIN (${stored}) r USING (series_id, bucket_start)
      WHERE n.traces IS DISTINCT FROM r.traces`,
    // A scope is fully deleted if it had non-zero rows in the window and all of them are retired; of usage that a server may count
    // no more (`$4`), also if they become zero.
    countChanges: `
      WITH retired AS (
        SELECT DISTINCT scope_id FROM ${change} WHERE (new_traces IS NULL OR $4::boolean AND new_traces = 0) AND old_traces > 0
      )
      SELECT count(*) FILTER (WHERE old_traces IS NULL) AS inserted,
             count(*) FILTER (WHERE old_traces IS NOT NULL AND new_traces IS NOT NULL) AS updated,
             count(*) FILTER (WHERE new_traces IS NULL) AS retired,
             ARRAY (
               SELECT scope_id FROM retired
               WHERE NOT EXISTS (
                 SELECT FROM (${stored}) kept
                 WHERE kept.scope_id = retired.scope_id AND kept.traces > 0 AND NOT EXISTS (
                   SELECT FROM ${change} c
                   WHERE c.series_id = kept.series_id AND c.bucket_start = kept.bucket_start
                     AND (c.new_traces IS NULL OR $4::boolean AND c.new_traces = 0)
                 )
               )
               ORDER BY scope_id
             ) AS "fullyDeleted"
      FROM ${change}`,
    // Runs before coverage is replaced: only the old coverage says what was final.
    keepRestatements: `
      INSERT INTO usage.restatement (series_id, bucket_start, old_traces, new_traces, fetch_number, restated_at)
      SELECT c.series_id, ${instant("c.bucket_start")}, c.old_traces, c.new_traces, $1, (SELECT usage.load_instant())
      FROM ${change} c
      JOIN usage.series s ON s.series_id = c.series_id
      JOIN usage.coverage v ON v.scope_id = s.scope_id AND v.final
        AND ${instant("c.bucket_start")} >= v.period_start AND ${instant("c.bucket_start")} < v.period_end
      WHERE coalesce(c.old_traces, 0) <> coalesce(c.new_traces, 0)
      ORDER BY c.series_id, c.bucket_start`,
    // Without coverage nothing was stored, but a zero that was withdrawn had been shown as final.
    keepWithdrawn: `
      INSERT INTO usage.restatement (series_id, bucket_start, old_traces, new_traces, fetch_number, restated_at)
      SELECT c.series_id, ${instant("c.bucket_start")}, NULL, c.new_traces, $1, (SELECT usage.load_instant())
      FROM ${change} c
      JOIN usage.series s ON s.series_id = c.series_id
      WHERE c.new_traces > 0
        AND EXISTS (
          SELECT FROM usage.withdrawal w
          WHERE w.scope_id = s.scope_id AND w.final
            AND ${instant("c.bucket_start")} >= w.period_start AND ${instant("c.bucket_start")} < w.period_end
        )
        AND NOT EXISTS (
          SELECT FROM usage.coverage v
          WHERE v.scope_id = s.scope_id
            AND ${instant("c.bucket_start")} >= v.period_start AND ${instant("c.bucket_start")} < v.period_end
        )
      ORDER BY c.series_id, c.bucket_start`,
    // A change is late if the earlier answer came after the bucket's end. Before that, the bucket was still growing.
    lateChanges: `
      SELECT v.final AS was_final,
             ($2::integer[])[1 + width_bucket(extract(epoch FROM $1::timestamptz - b.bucket_end) / 3600, $2::numeric[])] AS age_hours,
             count(*) AS changes, sum(abs(coalesce(c.new_traces, 0) - coalesce(c.old_traces, 0)))::bigint AS traces_moved
      FROM ${change} c
      JOIN usage.series s ON s.series_id = c.series_id
      JOIN usage.scope p ON p.scope_id = s.scope_id AND p.stride IN ('hour', 'day')
      JOIN usage.coverage v ON v.scope_id = s.scope_id
        AND ${instant("c.bucket_start")} >= v.period_start AND ${instant("c.bucket_start")} < v.period_end
      CROSS JOIN LATERAL (SELECT ${instant("c.bucket_start")} + ${BUCKET_LENGTH} AS bucket_end) b
      WHERE coalesce(c.old_traces, 0) <> coalesce(c.new_traces, 0) AND v.fetched_at >= b.bucket_end
      GROUP BY 1, 2
      ORDER BY 1, 2`,
    mergeChanges: `
      MERGE INTO ${name} r USING ${change} c ON r.series_id = c.series_id AND r.bucket_start = c.bucket_start
      WHEN MATCHED AND c.new_traces IS NULL THEN DELETE
      WHEN MATCHED THEN UPDATE SET traces = c.new_traces
      WHEN NOT MATCHED THEN INSERT (series_id, bucket_start, traces) VALUES (c.series_id, c.bucket_start, c.new_traces)
      ${isDate ? `; ${keepMonthsOf(change)}` : ""}`,
  };
}
