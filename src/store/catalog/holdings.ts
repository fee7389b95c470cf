import { sql } from "kysely";
import type { Database } from "../db/database.ts";

/** What is stored of a workspace or a source. */
export interface Holdings {
  readonly records: number;
  readonly restatements: number;
  readonly loadedIntervals: number;
  readonly failures: number;
  /** From the export and from control totals, closed ones too. */
  readonly differences: number;
  readonly fetchTasks: number;
  readonly prices: number;
  /** Months that are closed with it, such as `2026-03`. */
  readonly closedMonths: readonly string[];
  /** Closed months that name it as left out. It held no record. */
  readonly leftOutMonths: readonly string[];
}

/** Counts what depends on these scopes and workspaces; with a source, on that source as well. */
export async function holdingsOf(
  db: Database,
  of: { scopeIds: readonly number[]; workspaces: readonly number[]; sourceId: number | null },
): Promise<Holdings> {
  const { sourceId } = of;
  const scopes = sql`any (${[...of.scopeIds]}::integer[])`;
  const workspaces = sql`any (${[...of.workspaces]}::integer[])`;
  const { rows } = await sql<Holdings>`
    with mine as materialized (select series_id from usage.series where scope_id = ${scopes})
    select ((select count(*) from usage.hourly_record join mine using (series_id))
             + (select count(*) from usage.dated_record join mine using (series_id)))::bigint as records,
           (select count(*)::integer from usage.restatement join mine using (series_id)) as restatements,
           (select count(*)::integer from usage.coverage where scope_id = ${scopes}) as "loadedIntervals",
           (select count(*)::integer from usage.failure where scope_id = ${scopes}) as failures,
           ((select count(*) from usage.reconciliation_difference where scope_id = ${scopes})
             + (select count(*) from usage.control_difference where scope_id = ${scopes}))::integer as differences,
           (select count(*)::integer from usage.fetch_task
            where scope_ids && ${[...of.scopeIds]}::integer[] or source_id = ${sourceId}) as "fetchTasks",
           (select count(*)::integer from usage.price
            where workspace_id = ${workspaces} or source_id = ${sourceId}) as prices,
           array(select distinct to_char(m.month_start, 'YYYY-MM') from usage.month_close m
                 left join usage.closed_workspace w on w.close_id = m.close_id and w.workspace_id = ${workspaces}
                 where m.source_id = ${sourceId} or not w.is_left_out
                   or (w.is_left_out and exists (select from mine))
                   -- A release that kept no list of workspaces closed it.
                   or exists (select from usage.closed_total t join mine using (series_id) where t.close_id = m.close_id)
                   or exists (
                     select from usage.closed_correction k where k.close_id = m.close_id and k.workspace_id = ${workspaces}
                   )
                 union
                 -- Billing periods that need not be months.
                 select p.period_start || ' to ' || p.period_end from usage.period_close p
                 where p.source_id = ${sourceId} or exists (
                   select from usage.period_total t
                   join usage.entity e on e.source_id = p.source_id and e.dimension = 'workspace' and e.external_id = t.workspace
                   where t.period_close_id = p.period_close_id and e.entity_id = ${workspaces}
                 )
                 order by 1) as "closedMonths",
           array(select distinct to_char(m.month_start, 'YYYY-MM') from usage.month_close m
                 join usage.closed_workspace w using (close_id)
                 where w.workspace_id = ${workspaces} and w.is_left_out order by 1) as "leftOutMonths"
  `.execute(db);
  return rows[0] as Holdings;
}
