import { type Database, query, queryOne } from "../../core/store/db/query.ts";

interface WorkspaceTotal {
  readonly workspace: string;
  readonly days: number;
  readonly traces: number;
  readonly lastWeek: number;
}

export async function dailyTotals(db: Database, source: string): Promise<WorkspaceTotal[]> {
  return query<WorkspaceTotal>(db)`
    select coalesce(workspace_name, workspace_id) as workspace, count(traces)::integer as days,
           coalesce(sum(traces), 0)::bigint as traces,
           coalesce(sum(traces) filter (where usage_date > (now() at time zone 'UTC')::date - 7), 0)::bigint as "lastWeek"
    from reporting.fct_usage_workspace_daily
    where source_id = ${source}
    group by workspace_id, workspace_name
    order by 3 desc, 1
  `;
}

export async function newestFetch(db: Database): Promise<number> {
  const newest = db.selectFrom("usage.fetch").select(({ fn }) => fn.max("fetch_number").as("fetchNumber"));
  return (await newest.executeTakeFirstOrThrow()).fetchNumber ?? 0;
}

export async function fetchesSince(
  db: Database,
  { source, after }: { source: string; after: number },
): Promise<{ requests: number; failed: number }> {
  return queryOne<{ requests: number; failed: number }>(db)`
    select count(*)::integer as requests, count(*) filter (where f.outcome in ('failed', 'refused'))::integer as failed
    from usage.fetch f join usage.source s using (source_id)
    where s.slug = ${source} and f.fetch_number > ${after} and f.purpose = 'load'
  `;
}

/** Stored traces of a project for each hour (epoch ms), as far back as syncs load hours. */
export async function hourlyTracesOf(
  db: Database,
  { source, project }: { source: string; project: string },
): Promise<{ at: number; traces: number }[]> {
  const rows = await query<{ hour: Date; traces: number }>(db)`
    select usage_hour as hour, traces from reporting_detail.fct_usage_by_id_hourly
    where source_id = ${source} and group_by = 'project' and dimension_name = ${project} and traces > 0 and usage_hour > now() - interval '31 days'
  `;
  return rows.map(({ hour, traces }) => ({ at: hour.getTime(), traces }));
}
