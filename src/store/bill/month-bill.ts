import { sql } from "kysely";
import type { BillLine } from "../../domain/bill/bill.ts";
import type { Database } from "../db/database.ts";

/** The lines of a month's bill, in their order. `monthStart`: its first day, ISO. None: no usage, or no day of it is expected. */
export async function monthBill(
  db: Database,
  { source, monthStart }: { source: string; monthStart: string },
): Promise<BillLine[]> {
  const { rows } = await sql<BillLine>`
    select service, line, measure, sku, trim_scale(unit_price)::text as "unitPrice", currency,
           from_quantity::float8 as "fromQuantity", to_quantity::float8 as "toQuantity", counted_over as "countedOver",
           to_char(corrected_month, 'YYYY-MM') as "correctedMonth", trim_scale(quantity)::text as quantity,
           trim_scale(estimated_cost)::text as cost, days_expected as "daysExpected", days_loaded as "daysLoaded",
           is_final as "isFinal", is_proved as "isProved", is_closed as "isClosed"
    from reporting.usage_bill_monthly
    where source_id = ${source} and month_start = ${monthStart}::date
    order by line_number
  `.execute(db);
  return rows;
}
