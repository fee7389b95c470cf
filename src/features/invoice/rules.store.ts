import { sql } from "kysely";
import { type Database, query } from "../../core/store/db/query.ts";
import type { InvoiceRule } from "./rule.ts";

/** Rules of the applied file, in their order. */
export async function storedRules(db: Database): Promise<InvoiceRule[]> {
  return query<InvoiceRule>(db)`
    select line_text as text, kind, unit, valid_from::text as "from", valid_to::text as "to", period, measure, sku, rounding,
           trim_scale(tolerance_amount)::text as "toleranceAmount", trim_scale(tolerance_percent)::text as "tolerancePercent", divide
    from usage.invoice_rule order by rule_number
  `;
}

export async function replaceRules(db: Database, rules: readonly InvoiceRule[]): Promise<void> {
  await sql`lock table usage.invoice_rule in share row exclusive mode`.execute(db);
  await db.deleteFrom("usage.invoice_rule").execute();
  await sql`
    insert into usage.invoice_rule
    select row_number() over (), r.* from json_to_recordset(${JSON.stringify(rules)}::json) r (
      text text, kind text, unit text, "from" date, "to" date, period text, measure text, sku text, rounding text,
      "toleranceAmount" numeric, "tolerancePercent" numeric, divide text
    )
  `.execute(db);
}
