import { sql } from "kysely";
import { storeDueCharges } from "../bill/charges.ts";
import { type Database, query } from "../db/query.ts";

/** An exact decimal text. */
export interface Cost {
  readonly currency: string;
  readonly cost: string;
  /** Part without an invoice: deployments by runs or uptime since October 2026. */
  readonly notInvoiced: string;
}

/**
 * Closes the costs of a closed month: the final corrections of earlier months that it shows, then the charges of its workspaces
 * by day, and their sums by price. Workspaces that it left out have neither. The order matters: the views show corrections in
 * the first month whose costs are not closed, and no charge of a month that is closed without them.
 */
export async function keepCosts(db: Database, closeId: number): Promise<Cost[]> {
  await keepCorrections(db, closeId);
  await sql`update usage.month_close set costs_closed_at = clock_timestamp() where close_id = ${closeId}`.execute(
    db,
  );
  await storeDueCharges(db);
  await keepCharges(db, closeId);
  return query<Cost>(db)`
    select k.currency, trim_scale(sum(k.cost))::text as cost,
           trim_scale(coalesce(sum(k.cost) filter (where usage.is_on_no_invoice(k.measure, m.month_start)), 0))::text as "notInvoiced"
    from usage.closed_cost k join usage.month_close m using (close_id) where close_id = ${closeId}
    group by k.currency order by k.currency
  `;
}

async function keepCorrections(db: Database, closeId: number): Promise<void> {
  await sql`
    insert into usage.closed_correction
      (close_id, usage_date, workspace_id, sku, price_id, tier, from_quantity, unit_price, currency, traces, cost, measure)
    select m.close_id, c.usage_date, c.workspace_entity_id, c.sku, c.price_id, c.tier, c.from_quantity, c.unit_price,
           c.currency, c.traces, c.cost, c.measure
    from usage.month_close m
    join usage.open_correction c on c.source_id = m.source_id and c.billing_month = m.month_start
    where m.close_id = ${closeId} and c.is_final and not exists (
      select from usage.closed_workspace w
      where w.close_id = m.close_id and w.workspace_id = c.workspace_entity_id and w.is_left_out
    )
  `.execute(db);
}

async function keepCharges(db: Database, closeId: number): Promise<void> {
  await sql`
    insert into usage.closed_charge
      (close_id, usage_date, workspace_id, sku, price_id, tier, from_quantity, unit_price, currency, traces, cost, measure)
    select w.close_id, c.usage_date, w.workspace_id, c.sku, c.price_id, c.tier, c.from_quantity, c.unit_price, c.currency,
           c.traces, c.cost, c.measure
    from usage.month_close m
    join usage.closed_workspace w using (close_id)
    join usage.charge c
      on c.source_id = m.source_id and c.month_start = m.month_start and c.workspace_id = w.workspace_id and not c.is_closed
    -- A close proves traces. Other charges that are not final yet are changes of the closed month once they are.
    where m.close_id = ${closeId} and not w.is_left_out and (c.measure = 'traces' or c.is_final)
  `.execute(db);
  await sql`
    insert into usage.closed_cost (close_id, workspace_id, sku, unit_price, currency, traces, cost, measure)
    select close_id, workspace_id, sku, unit_price, currency, sum(traces), sum(cost), measure
    from usage.closed_charge where close_id = ${closeId}
    group by close_id, workspace_id, sku, unit_price, currency, measure
  `.execute(db);
}
