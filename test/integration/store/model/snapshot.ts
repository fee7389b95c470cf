import type pg from "pg";
import { STRIDE_MS, type Stride } from "../../../../src/core/domain/time/stride.ts";
import type { GroupBy } from "../../../../src/core/domain/usage/record.ts";
import { hoursBy, monthsBy } from "../../../support/views.ts";
import { type Lines, line, type Value } from "./lines.ts";

export interface Shown {
  readonly firstDay: number;
  readonly hourlyUntil: number;
}

const BY_BUCKET = new Set(["coverage", "failure"]);

export async function takeSnapshot(
  reader: pg.Client,
  { firstDay, hourlyUntil }: Shown,
): Promise<{ now: number; lines: Lines }> {
  const [from, until] = [firstDay, hourlyUntil].map((ms) => `'${new Date(ms).toISOString()}'::timestamptz`);
  const queries: Record<string, string> = {
    record: `
      SELECT s.stride, s.group_by, w.external_id, e.external_id, r.bucket, r.traces
      FROM (
        SELECT series_id, bucket_start AS bucket, traces FROM usage.hourly_record
        UNION ALL
        SELECT series_id, bucket_start::timestamp AT TIME ZONE 'UTC', traces FROM usage.dated_record
      ) r
      LEFT JOIN usage.series x USING (series_id) LEFT JOIN usage.trace_scope s USING (scope_id)
      LEFT JOIN usage.entity e ON e.entity_id = x.entity_id LEFT JOIN usage.entity w ON w.entity_id = s.workspace_id`,
    "monthly total": `
      SELECT s.stride, s.group_by, w.external_id, e.external_id, t.month_start, t.traces, t.records
      FROM usage.monthly_total t
      LEFT JOIN usage.series x USING (series_id) LEFT JOIN usage.trace_scope s USING (scope_id)
      LEFT JOIN usage.entity e ON e.entity_id = x.entity_id LEFT JOIN usage.entity w ON w.entity_id = s.workspace_id`,
    coverage: `
      SELECT c.period_start, c.period_end, s.stride, s.group_by, w.external_id, c.final, c.fetch_number, c.fetched_at
      FROM usage.coverage c JOIN usage.trace_scope s USING (scope_id) JOIN usage.entity w ON w.entity_id = s.workspace_id`,
    failure: `
      SELECT f.period_start, f.period_end, s.stride, s.group_by, w.external_id,
             f.state, f.attempts, f.fetch_number, f.failed_at, f.retry_at
      FROM usage.failure f JOIN usage.trace_scope s USING (scope_id) JOIN usage.entity w ON w.entity_id = s.workspace_id`,
    restatement: `
      SELECT s.stride, s.group_by, w.external_id, e.external_id, t.bucket_start, t.old_traces, t.new_traces, t.fetch_number
      FROM usage.restatement t JOIN usage.series x USING (series_id) JOIN usage.trace_scope s USING (scope_id)
      JOIN usage.entity e ON e.entity_id = x.entity_id JOIN usage.entity w ON w.entity_id = s.workspace_id`,
    entity: "SELECT dimension, external_id, first_seen_at, last_seen_at FROM usage.entity",
    name: `
      SELECT e.dimension, e.external_id, n.name, n.fetched_at, n.fetch_number
      FROM usage.entity_name n JOIN usage.entity e USING (entity_id)`,
    workspace: `
      SELECT e.external_id, w.readable_at, w.is_deleted, w.unlisted_since, w.readable_since, w.used_before
      FROM usage.workspace w JOIN usage.entity e USING (entity_id)`,
    "view usage_record": `
      SELECT stride, group_by, workspace_id, dimension_id, period_start, period_end, dimension_name, traces, is_final, fetched_at
      FROM reporting_detail.usage_record`,
    "view usage_restatement": `
      SELECT stride, group_by, workspace_id, dimension_id, period_start, old_amount::bigint AS old, new_amount::bigint AS new
      FROM reporting_detail.usage_restatement`,
    "view usage_coverage_daily": `
      SELECT usage_date, workspace_id, group_by, stride, status FROM reporting_detail.usage_coverage_daily
      WHERE stride = 'day' OR usage_date < (${until} AT TIME ZONE 'UTC')::date`,
    "view dim_workspace": `
      SELECT workspace_id, workspace_name, first_seen_at, last_seen_at, is_deleted, unlisted_since
      FROM reporting.dim_workspace`,
    "view dim_project":
      "SELECT project_id, project_name, first_seen_at, last_seen_at FROM reporting.dim_project",
    "view dim_user": "SELECT user_id, user_email, first_seen_at, last_seen_at FROM reporting_detail.dim_user",
    "view dim_api_key":
      "SELECT api_key_short_key, NULL, first_seen_at, last_seen_at FROM reporting_detail.dim_api_key",
  };
  const dimensions = {
    workspace: "",
    project: "project_id, project_name,",
    user: "user_id, NULL,",
    api_key: "api_key_short_key, NULL,",
  };
  for (const [groupBy, dimension] of Object.entries(dimensions)) {
    const columns = `workspace_id, workspace_name, ${dimension} traces, is_final, coverage_status, fetched_at`;
    queries[`view fct_usage_${groupBy}_daily`] =
      `SELECT usage_date, ${columns} FROM reporting.fct_usage_${groupBy}_daily`;
    queries[`view fct_usage_${groupBy}_hourly`] =
      `SELECT usage_hour, ${columns} FROM ${hoursBy(groupBy as GroupBy)}
       WHERE usage_hour >= ${from} AND usage_hour < ${until}`;
    queries[`view fct_usage_${groupBy}_monthly`] = `
      SELECT month_start, workspace_id, workspace_name, ${dimension} traces, days_expected, days_loaded, is_complete, is_final,
             traces_loaded
      FROM ${monthsBy(groupBy as GroupBy)}`;
  }
  await reader.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  // Prepared, because planning the views takes several times as long as running them.
  const run = async (name: string, text: string) =>
    (await reader.query<Value[]>({ name, text, rowMode: "array" })).rows;
  const [[now]] = (await run("now", "SELECT now()")) as [[Date]];
  const lines: Record<string, string[]> = {};
  for (const [name, text] of Object.entries(queries)) {
    const rows = await run(name, text);
    lines[name] = (BY_BUCKET.has(name) ? rows.flatMap(eachBucket) : rows).map(line).sort();
  }
  await reader.query("COMMIT");
  return { now: now.getTime(), lines };
}

function eachBucket([start, end, stride, ...rest]: Value[]): Value[][] {
  const size = STRIDE_MS[stride as Stride];
  const [from, to] = [(start as Date).getTime(), (end as Date).getTime()];
  return Array.from({ length: (to - from) / size }, (_, i) => [stride, ...rest, new Date(from + i * size)]);
}
