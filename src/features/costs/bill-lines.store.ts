import { sql } from "kysely";
import type { CalendarMonth } from "../../core/domain/months/month.ts";
import { type Database, query } from "../../core/store/db/query.ts";
import { NO_COST_CENTER, UNALLOCATED } from "../owners/owner.ts";
import type { BillLine } from "./bill.ts";

export async function monthBill(
  db: Database,
  { source, monthStart }: { source: string; monthStart: string },
): Promise<BillLine[]> {
  return query<BillLine>(db)`
    select null as "workspaceId", null as "workspaceName", service, line, measure, added_text as "addedText", sku,
           trim_scale(unit_price)::text as "unitPrice", currency,
           from_quantity::float8 as "fromQuantity", to_quantity::float8 as "toQuantity", counted_over as "countedOver",
           to_char(corrected_month, 'YYYY-MM') as "correctedMonth", trim_scale(quantity)::text as quantity,
           trim_scale(estimated_cost)::text as cost, days_expected as "daysExpected", days_loaded as "daysLoaded",
           days_proved as "daysProved", days_differing as "daysDiffering", trim_scale(unproved_cost)::text as "unprovedCost",
           is_final as "isFinal", is_proved as "isProved", is_closed as "isClosed"
    from reporting.usage_bill_monthly
    where source_id = ${source} and month_start = ${monthStart}::date
    order by line_number
  `;
}

/** The total of a month's bill in a currency. */
export interface MonthTotal {
  readonly monthStart: string;
  readonly currency: string;
  /** Exact decimals. */
  readonly cost: string;
  readonly unproved: string;
}

/** Totals of bills, as in `reporting.usage_bill_monthly`. A month without a priced line has none. */
export async function monthTotals(
  db: Database,
  { source, from, to }: { source: string; from: string; to: string },
): Promise<MonthTotal[]> {
  return query<MonthTotal>(db)`
    select month_start::text as "monthStart", currency, trim_scale(sum(estimated_cost))::text as cost,
           trim_scale(coalesce(sum(unproved_cost), 0))::text as unproved
    from reporting.usage_bill_monthly
    where source_id = ${source} and month_start >= ${from}::date and month_start < ${to}::date and estimated_cost is not null
    group by 1, 2 order by 1, 2
  `;
}

export async function chargesByWorkspace(
  db: Database,
  { source, monthStart }: { source: string; monthStart: string },
): Promise<BillLine[]> {
  return query<BillLine>(db)`
    with charged as (
      select b.workspace_entity_id, b.measure, b.sku, b.unit_price, b.currency, b.tier, b.from_quantity, b.price_id,
             case when b.is_correction then usage.month_of(b.usage_date) end as corrected_month, b.quantity, b.cost,
             b.is_final, b.is_correction, b.usage_date
      from usage.billed_charge b
      where b.source_id = (select s.source_id from usage.source s where s.slug = ${source})
        and b.billing_month = ${monthStart}::date
    ),
    proved as (
      select o.workspace_entity_id, k.measure, range_intersect_agg(o.proved) as days
      from (select distinct measure from charged) k
      join usage.bill_cell o on o.meter = any (usage.meters_of_measure(k.measure))
      where o.source_id = (select s.source_id from usage.source s where s.slug = ${source})
      group by 1, 2
    ),
    line as (
      select c.workspace_entity_id, c.measure, c.sku, c.unit_price, c.currency, c.corrected_month,
             case when c.tier > 0 then c.from_quantity end as from_quantity, v.to_quantity,
             case when v.price_id is null then null when p.workspace_id is null then p.counted_over else 'workspace' end as counted_over,
             sum(c.quantity) as quantity, sum(c.cost) as cost, bool_and(c.is_final) as is_final,
             coalesce(sum(c.cost) filter (where not coalesce(f.days, '{}') @> c.usage_date and not c.is_correction), 0) as unproved_cost
      from charged c
      left join proved f using (workspace_entity_id, measure)
      left join usage.volume_tier v on c.tier > 0 and v.price_id = c.price_id and v.tier = c.tier and v.from_quantity = c.from_quantity
      left join usage.price p on p.price_id = v.price_id
      group by 1, 2, 3, 4, 5, 6, 7, 8, 9
    )
    select w.dimension_id as "workspaceId", w.dimension_name as "workspaceName", k.service,
           case when l.corrected_month is not null then 'correction'
                when usage.is_on_no_invoice(l.measure, ${monthStart}::date) then 'estimate' else 'charge' end as line,
           l.measure, null as "addedText", l.sku, trim_scale(l.unit_price)::text as "unitPrice", l.currency,
           l.from_quantity::float8 as "fromQuantity", l.to_quantity::float8 as "toQuantity", l.counted_over as "countedOver",
           to_char(l.corrected_month, 'YYYY-MM') as "correctedMonth", trim_scale(l.quantity)::text as quantity,
           trim_scale(l.cost)::text as cost, null as "daysExpected", null as "daysLoaded", null as "daysProved",
           null as "daysDiffering", trim_scale(l.unproved_cost)::text as "unprovedCost", l.is_final as "isFinal",
           l.is_final and l.unproved_cost = 0 as "isProved", exists (
             select from usage.closed_period c join usage.source s using (source_id)
             where s.slug = ${source} and c.month_start = ${monthStart}::date
           ) as "isClosed"
    from line l
    join usage.measure k using (measure)
    join usage.labelled_entity w on w.entity_id = l.workspace_entity_id
    order by coalesce(w.dimension_name, w.dimension_id) collate "C", w.dimension_id collate "C", k.service desc,
             l.corrected_month nulls first, l.measure collate "C", l.sku collate "C", l.from_quantity, l.unit_price desc, l.currency collate "C"
  `;
}

/** Costs of an owner at one SKU. Exact decimals. */
export interface OwnerCost {
  readonly sku: string;
  readonly measure: string;
  readonly currency: string;
  readonly cost: string;
  /** The part of `cost` that corrects closed months. Null: none. */
  readonly correction: string | null;
}

export interface OwnerBill {
  readonly owner: string;
  readonly costCenter: string;
  /** Exact decimal of the month's current traces. Null: none are loaded. */
  readonly traces: string | null;
  readonly costs: readonly OwnerCost[];
}

/**
 * Divides a month's bill by owners, unowned costs first. Costs equal the bill's charged lines to the last digit. A closed month
 * has the costs of its close, divided by today's owners. A correction goes to the owner of the workspace's rest. Corrections are
 * read only if the bill has some: planning that part takes longer than the rest.
 */
export async function monthBillByOwner(
  db: Database,
  { source, month, lines }: { source: string; month: CalendarMonth; lines: readonly BillLine[] },
): Promise<OwnerBill[]> {
  const corrections = sql`
      union all
      select owner, coalesce(owner_tags ->> 'usage-etl/cost_center', ${NO_COST_CENTER}), sku, measure, currency, null, sum(cost), sum(cost)
      from usage.divided_charge
      where source_id = (select s.source_id from usage.source s where s.slug = ${source}) and billing_month = ${month.start}::date
        and is_correction
      group by 1, 2, 3, 4, 5`;
  const isIn = sql`usage_date >= ${month.start}::date and usage_date < ${month.end}::date`;
  return query<OwnerBill>(db)`
    with part as (
      select owner, cost_center, null as sku, null as measure, null as currency, sum(traces) as traces, null::numeric as cost,
             null::numeric as correction
      from reporting.fct_usage_owner_daily where source_id = ${source} and ${isIn} and traces is not null group by 1, 2
      union all
      -- A workspace that a close left out is corrected in a later month.
      select owner, cost_center, sku, measure, currency, null, sum(cost), null
      from usage.owned_cost
      where slug = ${source} and ${isIn} and (is_closed or not exists (
        select from usage.closed_period c join usage.source s using (source_id) where s.slug = ${source} and c.month_start = ${month.start}::date
      ))
      group by 1, 2, 3, 4, 5 ${lines.some(({ line }) => line === "correction") ? corrections : sql``}
    ),
    owned as (
      select owner, cost_center, sku, measure, currency, sum(traces) as traces, sum(cost) as cost, sum(correction) as correction
      from part group by 1, 2, 3, 4, 5
    )
    select owner, cost_center as "costCenter", trim_scale(sum(traces))::text as traces,
           coalesce(json_agg(json_build_object(
             'sku', sku, 'measure', measure, 'currency', currency, 'cost', trim_scale(cost)::text,
             'correction', trim_scale(correction)::text
           ) order by sku collate "C", currency collate "C") filter (where cost is not null), '[]') as costs
    from owned
    group by owner, cost_center
    having sum(traces) <> 0 or bool_or(cost is not null)
    order by owner <> ${UNALLOCATED}, sum(cost) desc nulls last, sum(traces) desc nulls last, owner, cost_center
  `;
}
