import { sql } from "kysely";
import type { Database } from "../db/database.ts";

/** What a workspace's traces cost at one price when their month was closed, and now. Exact decimal texts. */
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
 * The costs of a closed month, those that were adjusted most first, and how many there are: as
 * `reporting_detail.fct_month_close_cost` has them. That view reads the charges of all closed months before it finds one.
 */
export async function closedCosts(
  db: Database,
  asked: { closeId: number; sourceId: number; monthStart: string; most: number },
): Promise<{ rows: ClosedCost[]; total: number }> {
  const { closeId, sourceId, monthStart, most } = asked;
  const { rows } = await sql<ClosedCost & { total: number }>`
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
  `.execute(db);
  return { rows: rows.map(({ total: _, ...row }) => row), total: rows[0]?.total ?? 0 };
}
