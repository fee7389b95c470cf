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

/** The largest costs of a closed month first, and how many there are. */
export async function closedCosts(
  db: Database,
  { source, monthStart, most }: { source: string; monthStart: string; most: number },
): Promise<{ rows: ClosedCost[]; total: number }> {
  const { rows } = await sql<ClosedCost & { total: number }>`
    select workspace_id as "workspaceId", workspace_name as "workspaceName", sku, currency,
           trim_scale(unit_price)::text as "unitPrice", trim_scale(closed_cost)::text as "closedCost",
           trim_scale(adjustment_cost)::text as "adjustmentCost", trim_scale(current_cost)::text as "currentCost",
           count(*) over ()::integer as total
    from reporting.usage_month_close_cost
    where source_id = ${source} and month_start = ${monthStart}::date
    order by abs(adjustment_cost) desc, closed_cost desc, workspace_id, sku, unit_price limit ${most}
  `.execute(db);
  return { rows: rows.map(({ total: _, ...row }) => row), total: rows[0]?.total ?? 0 };
}
