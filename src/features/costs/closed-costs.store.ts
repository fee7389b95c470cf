import type { Days } from "../../core/domain/time/days.ts";
import { isIfGiven } from "../../core/store/db/expressions.ts";
import { type Database, query, type Row } from "../../core/store/db/query.ts";

/** Cost of a workspace's traces at one price, at the close and now. Exact decimal texts. */
export interface ClosedCost extends Row<"usage.closed_charge", "sku" | "unitPrice" | "currency"> {
  readonly workspaceId: string;
  readonly workspaceName: string | null;
  readonly closedCost: string;
  readonly adjustmentCost: string;
  readonly currentCost: string;
}

/**
 * The largest adjustments of a close and the number of its costs, as in `reporting_detail.fct_close_cost`. A query of that view
 * would read the charges of every closed month.
 */
export async function closedCosts(
  db: Database,
  requested: { closeId: number; sourceId: number; monthStart: string; most: number },
): Promise<{ rows: ClosedCost[]; total: number }> {
  const { closeId, sourceId, monthStart, most } = requested;
  const rows = await query<ClosedCost & { total: number }>(db)`
    select w.dimension_id as "workspaceId", w.dimension_name as "workspaceName", p.sku, p.currency,
           trim_scale(p.unit_price)::text as "unitPrice", trim_scale(p.closed)::text as "closedCost",
           trim_scale(p.current - p.closed)::text as "adjustmentCost", trim_scale(p.current)::text as "currentCost",
           count(*) over ()::integer as total
    from (
      select workspace_id, sku, unit_price, currency, sum(closed) as closed, sum(current) as current
      from (
        select workspace_id, sku, unit_price, currency, cost as closed, 0 as current
        from usage.closed_charge where close_id = ${closeId}
        union all
        select workspace_id, sku, unit_price, currency, 0, cost
        from usage.later_charge
        where source_id = ${sourceId} and month_start = ${monthStart}::date
      ) each_one
      group by workspace_id, sku, unit_price, currency
    ) p
    join usage.labelled_entity w on w.entity_id = p.workspace_id
    order by abs(p.current - p.closed) desc, p.closed desc, 1, p.sku, p.unit_price limit ${most}
  `;
  return { rows: rows.map(({ total: _, ...row }) => row), total: rows[0]?.total ?? 0 };
}

export interface LaterCost extends Row<"usage.later_charge", "currency"> {
  readonly month: string;
  /** Positive or negative exact decimal. */
  readonly more: string;
  /** True if a charge is new since the close: its usage became final later, or its price was imported later. */
  readonly isUnkept: boolean;
}

/** Months whose costs changed after the close, without workspaces that it left out. `workspace`: entity id; default: all. */
export async function laterCosts(
  db: Database,
  { sourceId, from, to, workspace }: Days & { sourceId: number; workspace?: number | undefined },
): Promise<LaterCost[]> {
  return query<LaterCost>(db)`
    with charged as (
      select c.month_start, c.currency, sum(c.cost) as more,
             not bool_or(c.is_kept) and bool_or(c.measure <> 'traces') as is_unkept
      from (
        select source_id, month_start, usage_date, workspace_id, sku, measure, currency, cost, false as is_kept
        from usage.later_charge
        union all
        select m.source_id, m.month_start, k.usage_date, k.workspace_id, k.sku, k.measure, k.currency, -k.cost, true
        from usage.closed_charge k join usage.close m using (close_id)
      ) c
      where c.source_id = ${sourceId} and c.usage_date >= ${from}::date and c.usage_date < ${to}::date
        and ${isIfGiven("c.workspace_id", workspace)}
      group by c.month_start, c.currency, c.usage_date, c.workspace_id, c.sku
    )
    select to_char(month_start, 'YYYY-MM') as month, currency, trim_scale(sum(more))::text as more, bool_or(is_unkept) as "isUnkept"
    from charged
    group by month_start, currency
    having sum(more) <> 0 or bool_or(is_unkept)
    order by month_start, currency
  `;
}
