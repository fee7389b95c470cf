import { sql } from "kysely";
import { iso } from "../db/expressions.ts";
import { type Database, query } from "../db/query.ts";

/** Action of a close. Its detail begins with the month and a colon. */
export const CLOSE_ACTION = "month.close";
export const COSTS_ACTION = "month.close_costs";

/** SQL: the actor `a` who closed month `m`, if recorded. The record was written in the transaction of the close, a moment later. */
export const CLOSED_BY = sql`lateral (
  select a.actor, a.via from usage.operator_action a
  where a.source_id = m.source_id and a.at >= m.closed_at and a.at < m.closed_at + interval '15 minutes'
    and a.action = ${CLOSE_ACTION} and a.outcome = 'done' and a.detail like to_char(m.month_start, 'YYYY-MM') || ':%'
  order by a.at limit 1
) a`;

export interface ClosedMonth {
  readonly closeId: number;
  readonly month: string;
  readonly closedAt: string;
  /** Null: it is closed without costs. */
  readonly costsClosedAt: string | null;
  /** Null where no record says, such as for a shared token. */
  readonly by: { readonly name: string | null; readonly via: "page" | "command" } | null;
  /** Daily figures that were closed although the platform contradicts itself on them. */
  readonly accepted: number;
  readonly without: readonly string[];
  readonly settleAfterSeconds: number;
  readonly traces: number;
  readonly totals: number;
}

export async function closedMonths(
  db: Database,
  { sourceId, from, to }: { sourceId: number; from: string; to: string },
): Promise<ClosedMonth[]> {
  return query<ClosedMonth>(db)`
    select m.close_id as "closeId", to_char(m.month_start, 'YYYY-MM') as month,
           ${iso("m.closed_at", "MS")} as "closedAt",
           case when a.via is not null then json_build_object('name', a.actor, 'via', a.via) end as by,
           ${iso("m.costs_closed_at", "MS")} as "costsClosedAt",
           m.accepted_disagreements as accepted, m.settle_after_seconds as "settleAfterSeconds",
           array(select e.external_id from usage.closed_workspace w join usage.entity e on e.entity_id = w.workspace_id
                 where w.close_id = m.close_id and w.is_left_out order by 1) as without,
           t.traces, t.totals
    from usage.month_close m
    cross join lateral (
      select count(*)::integer as totals, coalesce(sum(t.traces) filter (where c.group_by = 'workspace'), 0)::bigint as traces
      from usage.closed_total t join usage.series s using (series_id) join usage.trace_scope c using (scope_id)
      where t.close_id = m.close_id
    ) t
    left join ${CLOSED_BY} on true
    where m.source_id = ${sourceId} and m.month_start >= ${from}::date and m.month_start < ${to}::date
    order by m.month_start desc
  `;
}

export async function closedMonth(
  db: Database,
  { sourceId, monthStart }: { sourceId: number; monthStart: string },
): Promise<ClosedMonth | undefined> {
  const [found] = await closedMonths(db, { sourceId, from: monthStart, to: `${monthStart.slice(0, 8)}02` });
  return found;
}
