import { sql } from "kysely";
import { type Database, query, type Row } from "../../core/store/db/query.ts";
import { chargesDue, storeDueCharges } from "../../core/store/months/charges.ts";

export interface Cost extends Row<"usage.closed_charge", "currency" | "cost"> {
  /** The part that no invoice contains: deployments by runs or uptime since October 2026. */
  readonly notInvoiced: string;
}

/**
 * Closes the costs of a closed month: first the final corrections of earlier months that it shows, then the charges by
 * workspace and day. Workspaces that the close left out have neither. The order matters: views show corrections in the first
 * month whose costs are not closed.
 */
export async function keepCosts(db: Database, closeId: number): Promise<Cost[]> {
  await keepCorrections(db, closeId);
  const { sourceId, month } = await db
    .updateTable("usage.close")
    .set({ costs_closed_at: sql`clock_timestamp()` })
    .where("close_id", "=", closeId)
    .returning(["source_id as sourceId", "month_start as month"])
    .executeTakeFirstOrThrow();
  await chargesDue(db, sourceId, month);
  await storeDueCharges(db);
  await keepCharges(db, closeId);
  await chargesDue(db, sourceId, month);
  return query<Cost>(db)`
    select k.currency, trim_scale(sum(k.cost))::text as cost,
           trim_scale(coalesce(sum(k.cost) filter (where usage.is_on_no_invoice(k.measure, m.month_start)), 0))::text as "notInvoiced"
    from usage.closed_charge k join usage.close m using (close_id) where close_id = ${closeId}
    group by k.currency order by k.currency
  `;
}

async function keepCorrections(db: Database, closeId: number): Promise<void> {
  await sql`
    insert into usage.closed_correction
      (close_id, usage_date, workspace_id, sku, price_id, tier, from_quantity, unit_price, currency, quantity, cost, measure)
    select m.close_id, c.usage_date, c.workspace_entity_id, c.sku, c.price_id, c.tier, c.from_quantity, c.unit_price,
           c.currency, c.quantity, c.cost, c.measure
    from usage.close m
    cross join lateral usage.open_corrections(m.source_id, m.month_start) c
    where m.close_id = ${closeId} and c.is_final and not exists (
      select from usage.closed_workspace w
      where w.close_id = m.close_id and w.workspace_id = c.workspace_entity_id and w.is_left_out
    )
  `.execute(db);
}

async function keepCharges(db: Database, closeId: number): Promise<void> {
  await sql`
    insert into usage.closed_charge
      (close_id, usage_date, workspace_id, sku, price_id, tier, from_quantity, unit_price, currency, quantity, cost, measure)
    select w.close_id, c.usage_date, w.workspace_id, c.sku, c.price_id, c.tier, c.from_quantity, c.unit_price, c.currency,
           c.quantity, c.cost, c.measure
    from usage.close m
    join usage.closed_workspace w using (close_id)
    join usage.later_charge c
      on c.source_id = m.source_id and c.month_start = m.month_start and c.workspace_id = w.workspace_id
    -- A close proves traces. Other charges that are not final yet are changes of the closed month once they are.
    where m.close_id = ${closeId} and (c.measure = 'traces' or c.is_final)
  `.execute(db);
}
