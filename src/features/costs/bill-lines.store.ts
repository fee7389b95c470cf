import { sql } from "kysely";
import type { CalendarMonth } from "../../core/domain/months/month.ts";
import { type Database, query } from "../../core/store/db/query.ts";
import { NO_COST_CENTER, UNALLOCATED } from "../owners/owner.ts";
import type { BillLine } from "./bill.ts";

/** A month's bill in the order of its lines. Empty without usage or expected days. */
export async function monthBill(
  db: Database,
  { source, monthStart }: { source: string; monthStart: string },
): Promise<BillLine[]> {
  return query<BillLine>(db)`
    select service, line, measure, sku, trim_scale(unit_price)::text as "unitPrice", currency,
           from_quantity::float8 as "fromQuantity", to_quantity::float8 as "toQuantity", counted_over as "countedOver",
           to_char(corrected_month, 'YYYY-MM') as "correctedMonth", trim_scale(quantity)::text as quantity,
           trim_scale(estimated_cost)::text as cost, days_expected as "daysExpected", days_loaded as "daysLoaded",
           is_final as "isFinal", is_proved as "isProved", is_closed as "isClosed"
    from reporting.usage_bill_monthly
    where source_id = ${source} and month_start = ${monthStart}::date
    order by line_number
  `;
}

export interface OwnerBill {
  readonly owner: string;
  readonly costCenter: string;
  /** Exact decimal of the month's current traces. Null: none are loaded. */
  readonly traces: string | null;
  /** Exact decimals by currency. */
  readonly costs: Readonly<Record<string, string>>;
  /** The part of `costs` that corrects closed months. */
  readonly corrections: Readonly<Record<string, string>>;
}

/**
 * Divides a month's bill by owners, unowned costs first. Costs equal the bill's lines to the last digit. A closed month has the
 * costs of its close, divided by today's owners. A correction goes to the owner of the workspace's rest. Corrections are read
 * only if the bill has some: planning that part takes longer than the rest.
 */
export async function monthBillByOwner(
  db: Database,
  { source, month, lines }: { source: string; month: CalendarMonth; lines: readonly BillLine[] },
): Promise<OwnerBill[]> {
  const corrections = sql`
      union all
      select owner, coalesce(owner_tags ->> 'usage-etl/cost_center', ${NO_COST_CENTER}), currency, null, sum(cost), sum(cost)
      from usage.divided_charge
      where source_id = (select s.source_id from usage.source s where s.slug = ${source}) and billing_month = ${month.start}::date
        and is_correction
      group by 1, 2, 3`;
  const isIn = sql`usage_date >= ${month.start}::date and usage_date < ${month.end}::date`;
  const costs = (column: string) =>
    sql`coalesce(jsonb_object_agg(currency, trim_scale(${sql.ref(column)})::text) filter (where ${sql.ref(column)} is not null), '{}')`;
  return query<OwnerBill>(db)`
    with part as (
      select owner, cost_center, null as currency, sum(traces) as traces, null::numeric as cost, null::numeric as correction
      from reporting.fct_usage_owner_daily where source_id = ${source} and ${isIn} and traces is not null group by 1, 2
      union all
      -- A workspace that a close left out is corrected in a later month.
      select owner, cost_center, currency, null, sum(cost), null
      from usage.owned_cost
      where slug = ${source} and ${isIn} and (is_closed or not exists (
        select from usage.closed_period c join usage.source s using (source_id) where s.slug = ${source} and c.month_start = ${month.start}::date
      ))
      group by 1, 2, 3 ${lines.some(({ line }) => line === "correction") ? corrections : sql``}
    ),
    owned as (
      select owner, cost_center, currency, sum(traces) as traces, sum(cost) as cost, sum(correction) as correction
      from part group by 1, 2, 3
    )
    select owner, cost_center as "costCenter", trim_scale(sum(traces))::text as traces, ${costs("cost")} as costs,
           ${costs("correction")} as corrections
    from owned
    group by owner, cost_center
    having sum(traces) <> 0 or bool_or(cost is not null)
    order by owner <> ${UNALLOCATED}, max(cost) desc nulls last, sum(traces) desc nulls last, owner, cost_center
  `;
}
