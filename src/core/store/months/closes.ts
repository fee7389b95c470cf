import { type RawBuilder, sql } from "kysely";
import { iso } from "../db/expressions.ts";
import { type Database, query, type Row } from "../db/query.ts";

/** Action of a close. Its detail begins with the name of the period and a colon. */
export const CLOSE_ACTION = "close";
export const COSTS_ACTION = "close.costs";

export const CLOSE_NAME = sql`coalesce(to_char(m.month_start, 'YYYY-MM'), m.period_start || ' to ' || m.period_end)`;

/** SQL: the actor `a` who made close `m`, if recorded. The record is written a moment after `closed_at`. */
export const CLOSED_BY = sql`lateral (
  select a.actor, a.via from usage.operator_action a
  where a.source_id = m.source_id and a.at >= m.closed_at and a.at < m.closed_at + interval '15 minutes'
    and a.action = ${CLOSE_ACTION} and a.outcome = 'done' and a.detail like ${CLOSE_NAME} || ':%'
  order by a.at limit 1
) a`;

export interface Close extends Row<"usage.close", "closeId" | "settleAfterSeconds"> {
  readonly name: string;
  readonly closedAt: string;
  /** Null: the period is closed without costs, as is every period that is not a month. */
  readonly costsClosedAt: string | null;
  /** Null if not recorded, such as for a shared token. */
  readonly by: { readonly name: string | null; readonly via: "page" | "command" } | null;
  readonly accepted: number;
  readonly without: readonly string[];
  readonly traces: number;
  readonly totals: number;
}

export async function closedMonths(
  db: Database,
  { sourceId, from, to }: { sourceId: number; from: string; to: string },
): Promise<Close[]> {
  return closesWhere(
    db,
    sql`m.source_id = ${sourceId} and m.month_start >= ${from}::date and m.month_start < ${to}::date`,
  );
}

export async function closeOf(
  db: Database,
  { sourceId, start, end }: { sourceId: number; start: string; end: string },
): Promise<Close | undefined> {
  const [found] = await closesWhere(
    db,
    sql`m.source_id = ${sourceId} and m.period_start = ${start}::date and m.period_end = ${end}::date`,
  );
  return found;
}

async function closesWhere(db: Database, condition: RawBuilder<unknown>): Promise<Close[]> {
  return query<Close>(db)`
    select m.close_id as "closeId", ${CLOSE_NAME} as name,
           ${iso("m.closed_at", "MS")} as "closedAt",
           case when a.via is not null then json_build_object('name', a.actor, 'via', a.via) end as by,
           ${iso("m.costs_closed_at", "MS")} as "costsClosedAt",
           m.accepted_disagreements as accepted, m.settle_after_seconds as "settleAfterSeconds",
           array(select e.external_id from usage.closed_workspace w join usage.entity e on e.entity_id = w.workspace_id
                 where w.close_id = m.close_id and w.is_left_out order by 1) as without,
           t.traces, t.totals
    from usage.close m
    cross join lateral (
      select count(*)::integer as totals, coalesce(sum(t.traces) filter (where c.group_by = 'workspace'), 0)::bigint as traces
      from usage.closed_total t join usage.series s using (series_id) join usage.trace_scope c using (scope_id)
      where t.close_id = m.close_id
    ) t
    left join ${CLOSED_BY} on true
    where ${condition}
    order by m.period_start desc
  `;
}
