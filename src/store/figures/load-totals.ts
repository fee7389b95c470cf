import { sql } from "kysely";
import type { Database } from "../db/database.ts";

interface WorkspaceTotal {
  readonly workspace: string;
  readonly days: number;
  readonly traces: number;
  readonly lastWeek: number;
}

export async function dailyTotals(db: Database, source: string): Promise<WorkspaceTotal[]> {
  const { rows } = await sql<WorkspaceTotal>`
    select coalesce(workspace_name, workspace_id) as workspace, count(traces)::integer as days,
           coalesce(sum(traces), 0)::bigint as traces,
           coalesce(sum(traces) filter (where usage_date > (now() at time zone 'UTC')::date - 7), 0)::bigint as "lastWeek"
    from reporting.fct_usage_workspace_daily
    where source_id = ${source}
    group by workspace_id, workspace_name
    order by 3 desc, 1
  `.execute(db);
  return rows;
}

export async function newestFetch(db: Database): Promise<number> {
  const { rows } = await sql<{ newest: number }>`
    select coalesce(max(fetch_number), 0) as newest from usage.fetch
  `.execute(db);
  return (rows[0] as { newest: number }).newest;
}

export async function fetchesSince(
  db: Database,
  { source, after }: { source: string; after: number },
): Promise<{ requests: number; failed: number }> {
  const { rows } = await sql<{ requests: number; failed: number }>`
    select count(*)::integer as requests, count(*) filter (where f.outcome in ('failed', 'refused'))::integer as failed
    from usage.fetch f join usage.source s using (source_id)
    where s.slug = ${source} and f.fetch_number > ${after} and f.purpose = 'load'
  `.execute(db);
  return rows[0] as { requests: number; failed: number };
}

/** Stored traces of a project by hour, epoch milliseconds, as far back as hours are kept up to date. */
export async function hourlyTracesOf(
  db: Database,
  { source, project }: { source: string; project: string },
): Promise<{ at: number; traces: number }[]> {
  const { rows } = await sql<{ hour: Date; traces: number }>`
    select usage_hour as hour, traces from reporting_detail.fct_usage_project_hourly
    where source_id = ${source} and project_name = ${project} and traces > 0 and usage_hour > now() - interval '31 days'
  `.execute(db);
  return rows.map(({ hour, traces }) => ({ at: hour.getTime(), traces }));
}
