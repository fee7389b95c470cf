import { sql } from "kysely";
import type { Database } from "../db/database.ts";

/**
 * Keeps the final corrections of earlier months that the month being closed shows, but for workspaces that are left out. The others
 * go on to the next month. Then it marks the month as one that keeps its charges. In this order: the views show corrections in the first month that is not marked.
 */
export async function keepCorrections(db: Database, closeId: number): Promise<void> {
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
  await db.updateTable("month_close").set({ keeps_charges: true }).where("close_id", "=", closeId).execute();
}
