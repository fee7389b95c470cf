import type { Days } from "../../domain/time/days.ts";
import { isIfGiven } from "../db/expressions.ts";
import { type Database, query } from "../db/query.ts";

/** Cost of a workspace's traces at one price at the close, and now. Exact decimal texts. */
export interface ClosedCost {
  readonly workspaceId: string;
  readonly workspaceName: string | null;
  readonly sku: string;
  readonly unitPrice: string;
  readonly currency: string;
  readonly closedCost: string;
  readonly adjustmentCost: string;
  readonly currentCost: string;
}

/**
 * The most adjusted costs first, with the number of costs, as in `reporting_detail.fct_month_close_cost`. That view reads the
 * charges of all closed months before it finds one.
 */
export async function closedCosts(
  db: Database,
  asked: { closeId: number; sourceId: number; monthStart: string; most: number },
): Promise<{ rows: ClosedCost[]; total: number }> {
  const { closeId, sourceId, monthStart, most } = asked;
  const rows = await query<ClosedCost & { total: number }>(db)`
    select w.dimension_id as "workspaceId", w.dimension_name as "workspaceName", p.sku, p.currency,
           trim_scale(p.unit_price)::text as "unitPrice", trim_scale(p.closed)::text as "closedCost",
           trim_scale(p.current - p.closed)::text as "adjustmentCost", trim_scale(p.current)::text as "currentCost",
           count(*) over ()::integer as total
    from (
      select workspace_id, sku, unit_price, currency, sum(closed) as closed, sum(current) as current
      from (
        select workspace_id, sku, unit_price, currency, cost as closed, 0 as current
        from usage.closed_cost where close_id = ${closeId}
        union all
        select workspace_id, sku, unit_price, currency, 0, cost
        from usage.charge
        where source_id = ${sourceId} and month_start = ${monthStart}::date and not is_closed
      ) each_one
      group by workspace_id, sku, unit_price, currency
    ) p
    join usage.month_close m on m.close_id = ${closeId}
    join usage.labelled_entity w on w.entity_id = p.workspace_id
    left join usage.closed_workspace x on x.close_id = m.close_id and x.workspace_id = p.workspace_id
    where x.is_left_out is not true
    order by abs(p.current - p.closed) desc, p.closed desc, 1, p.sku, p.unit_price limit ${most}
  `;
  return { rows: rows.map(({ total: _, ...row }) => row), total: rows[0]?.total ?? 0 };
}

export interface LaterCost {
  readonly month: string;
  readonly currency: string;
  /** Positive or negative exact decimal. */
  readonly more: string;
  /** Whether a charge is new since the close: its usage was final only later, or its price came later. */
  readonly isUnkept: boolean;
}

/** Months with changed closed costs, without workspaces that the close left out. `workspace`: its entity; default: all. */
export async function laterCosts(
  db: Database,
  { sourceId, from, to, workspace }: Days & { sourceId: number; workspace?: number | undefined },
): Promise<LaterCost[]> {
  // A charge that no figure shows belongs to a month with closed costs.
  return query<LaterCost>(db)`
    with charged as (
      select c.month_start, c.currency, coalesce(sum(c.cost) filter (where c.is_closed), 0) as kept,
             coalesce(sum(c.cost) filter (where not c.is_closed), 0) as now,
             not bool_or(c.is_closed) and bool_or(c.measure <> 'traces') as is_unkept
      from usage.charge c
      where c.source_id = ${sourceId} and c.usage_date >= ${from}::date and c.usage_date < ${to}::date
        and c.is_booked = c.is_closed and ${isIfGiven("c.workspace_id", workspace)}
      group by c.month_start, c.currency, c.usage_date, c.workspace_id, c.sku
    )
    select to_char(month_start, 'YYYY-MM') as month, currency, trim_scale(sum(now - kept))::text as more, bool_or(is_unkept) as "isUnkept"
    from charged
    group by month_start, currency
    having sum(now - kept) <> 0 or bool_or(is_unkept)
    order by month_start, currency
  `;
}
