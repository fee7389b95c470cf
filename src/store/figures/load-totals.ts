import { sql } from "kysely";
import type { Stride } from "../../domain/time/stride.ts";
import { type Meter, meterOf } from "../../domain/usage/meter.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import type { Database } from "../db/database.ts";

/** Totals of loaded usage: by workspace, and by request. */

export interface WorkspaceTotal {
  readonly workspace: string;
  readonly days: number;
  readonly traces: number;
  readonly lastWeek: number;
}

/** Traces by workspace, over all loaded days and the last seven of them. */
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

export interface FetchTotals {
  readonly meter: Meter;
  readonly groupBy: GroupBy;
  readonly stride: Stride;
  readonly requests: number;
  /** Of answers that were loaded. */
  readonly records: number;
  readonly traces: number;
  readonly failed: number;
}

/** The newest fetch number. */
export async function newestFetch(db: Database): Promise<number> {
  const { rows } = await sql<{ newest: number }>`
    select coalesce(max(fetch_number), 0) as newest from usage.fetch
  `.execute(db);
  return (rows[0] as { newest: number }).newest;
}

/** Requests for usage after a fetch number, by meter, dimension and stride, with the records and traces that were loaded. */
export async function fetchTotals(
  db: Database,
  { source, after }: { source: string; after: number },
): Promise<FetchTotals[]> {
  const { rows } = await sql<Omit<FetchTotals, "meter"> & { kind: string; tier: string }>`
    select f.kind, f.trace_tier as tier, f.group_by as "groupBy", f.stride, count(*)::integer as requests,
           coalesce(sum(f.records) filter (where f.outcome = 'loaded'), 0)::bigint as records,
           coalesce(sum(f.traces) filter (where f.outcome = 'loaded'), 0)::bigint as traces,
           count(*) filter (where f.outcome in ('failed', 'refused'))::integer as failed
    from usage.fetch f join usage.source s using (source_id)
    where s.slug = ${source} and f.fetch_number > ${after} and f.purpose = 'load'
    group by f.kind, f.trace_tier, f.group_by, f.stride
    order by f.kind desc, f.trace_tier, usage.dimension_position(f.group_by),
             array_position(array['year', 'month', 'week', 'day', 'hour'], f.stride)
  `.execute(db);
  return rows.flatMap(({ kind, tier, ...totals }) => {
    const meter = meterOf(kind, tier);
    return meter === undefined ? [] : [{ meter, ...totals }];
  });
}
