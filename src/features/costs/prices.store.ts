import { type RawBuilder, sql } from "kysely";
import { type Database, query, queryOne, queryValues, type Row } from "../../core/store/db/query.ts";
import { recomputeCharges, type StoredCharges } from "../../core/store/months/charges.ts";
import type { PricedMeasure, TieredPrice, UnpricedUsage } from "./price.ts";

type StoredPrice = TieredPrice & Row<"usage.price", "priceId">;

export async function listPrices(db: Database): Promise<StoredPrice[]> {
  return query<StoredPrice>(db)`
    select p.price_id as "priceId", k.name as sku, trim_scale(p.unit_price)::text as "unitPrice", p.currency,
           to_char(p.valid_from, 'YYYY-MM-DD') as "validFrom", to_char(p.valid_to, 'YYYY-MM-DD') as "validTo",
           s.slug as source, w.external_id as workspace, p.counted_over as "countedOver", k.measure,
           (select coalesce(
              json_agg(json_build_object('fromQuantity', from_quantity, 'unitPrice', trim_scale(unit_price)::text)
                       order by from_quantity), '[]')
            from usage.price_tier t where t.price_id = p.price_id) as tiers
    from usage.price p
    join usage.sku k using (sku_id)
    left join usage.source s on s.source_id = p.source_id
    left join usage.entity w on w.entity_id = p.workspace_id
    order by k.name collate "C", s.slug nulls first, w.external_id nulls first, p.valid_from
  `;
}

/** Measures by SKU of closed charges, because their prices may be gone. */
export async function closedMeasures(db: Database): Promise<Map<string, string>> {
  const rows = await db.selectFrom("usage.closed_charge").select(["sku", "measure"]).distinct().execute();
  return new Map(rows.map(({ sku, measure }) => [sku, measure]));
}

export async function adjustedCosts(db: Database): Promise<string[]> {
  return queryValues<string>(db)`
    select distinct source_id || ' ' || to_char(period_start, 'YYYY-MM') as month
    from reporting_detail.fct_close_cost where adjustment_cost <> 0 order by 1
  `;
}

export async function costlessMonths(db: Database): Promise<string[]> {
  return queryValues<string>(db)`
    select s.slug || ' ' || to_char(m.month_start, 'YYYY-MM') as month
    from usage.close m join usage.source s using (source_id) where m.costs_closed_at is null and m.month_start is not null order by 1
  `;
}

/** Others cannot change prices until the transaction ends, but can read them. */
export async function lockPrices(db: Database): Promise<void> {
  await sql`lock table usage.price in share row exclusive mode`.execute(db);
}

export async function knownWorkspaces(db: Database): Promise<{ source: string; workspaces: string[] }[]> {
  return query<{ source: string; workspaces: string[] }>(db)`
    select s.slug as source,
           array(
             select e.external_id from usage.entity e join usage.workspace w using (entity_id)
             where e.source_id = s.source_id order by 1
           ) as workspaces
    from usage.source s
    order by s.slug
  `;
}

/** Computes all charges again. Error: `price_no_overlap` of the schema. */
export async function replacePrices(
  db: Database,
  { removed, added }: { removed: readonly number[]; added: readonly TieredPrice[] },
): Promise<StoredCharges> {
  await removePrices(db, removed);
  await addPrices(db, added);
  return recomputeCharges(db);
}

async function removePrices(db: Database, priceIds: readonly number[]): Promise<void> {
  await sql`delete from usage.price where price_id = any (${priceIds}::integer[])`.execute(db);
  await sql`delete from usage.sku k where not exists (select from usage.price p where p.sku_id = k.sku_id)`.execute(
    db,
  );
}

/** Sources and workspaces must be stored. */
async function addPrices(db: Database, prices: readonly TieredPrice[]): Promise<void> {
  if (prices.length === 0) return;
  const given = JSON.stringify(prices);
  await sql`
    insert into usage.sku (name, measure)
    select distinct p ->> 'sku', coalesce(p ->> 'measure', 'traces') from jsonb_array_elements(${given}::jsonb) p
    on conflict on constraint sku_name_key do nothing
  `.execute(db);
  // Postgres casts each text itself, so that no price passes through a float.
  await sql`
    with given as (
      select p, k.sku_id, s.source_id, e.entity_id
      from jsonb_array_elements(${given}::jsonb) p
      join usage.sku k on k.name = p ->> 'sku'
      left join usage.source s on s.slug = p ->> 'source'
      left join usage.entity e
        on e.source_id = s.source_id and e.dimension = 'workspace' and e.external_id = p ->> 'workspace'
    ), added as (
      insert into usage.price (sku_id, source_id, workspace_id, unit_price, currency, valid_from, valid_to, counted_over)
      select sku_id, source_id, entity_id, (p ->> 'unitPrice')::numeric, p ->> 'currency', (p ->> 'validFrom')::date,
             (p ->> 'validTo')::date, p ->> 'countedOver'
      from given
      returning price_id, sku_id, source_id, workspace_id, valid_from
    )
    insert into usage.price_tier (price_id, from_quantity, unit_price)
    select a.price_id, (t ->> 'fromQuantity')::bigint, (t ->> 'unitPrice')::numeric
    from given g
    join added a
      on a.sku_id = g.sku_id and a.source_id is not distinct from g.source_id
     and a.workspace_id is not distinct from g.entity_id and a.valid_from = (g.p ->> 'validFrom')::date
    cross join jsonb_array_elements(g.p -> 'tiers') t
  `.execute(db);
}

export async function unpricedUsage(db: Database, sourceId: number): Promise<UnpricedUsage> {
  return queryOne<UnpricedUsage>(db)`
    select u.prices, u.days, u.traces, u."firstDay", u."lastDay"
    from (${unpricedBySource()}) u where u.source_id = ${sourceId}
  `;
}

/**
 * Unpriced traces by source: the days of `reporting_detail.usage_unpriced_daily` where has_other_price is false, without closed
 * months. That view reads all history, this query only days without a valid price.
 */
export function unpricedBySource(): RawBuilder<unknown> {
  return sql`
    with open as materialized (
      select e.source_id, w.entity_id as workspace_id,
             '{(,)}'::datemultirange - coalesce(p.days, '{}') - coalesce(n.days, '{}') - coalesce(m.days, '{}') as days
      from usage.workspace w join usage.entity e using (entity_id)
      left join (
        select source_id, range_agg(daterange(month_start, (month_start + interval '1 month')::date)) as days
        from usage.close where costs_closed_at is null and month_start is not null group by 1
      ) n using (source_id)
      left join (
        select workspace_entity_id, range_agg(days) as days from usage.charged_month group by 1
      ) m on m.workspace_entity_id = w.entity_id
      left join (
        select workspace_entity_id, range_agg(days) as days from usage.measured_price
        where measure in ('traces', 'shortlived') group by 1
      ) p on p.workspace_entity_id = w.entity_id
      where exists (select from usage.price)
    ), cell as materialized (
      select o.source_id, o.workspace_id, o.days, c.scope_id
      from open o
      join usage.trace_scope c on c.source_id = o.source_id and c.workspace_id = o.workspace_id and c.group_by = 'workspace'
       and c.stride = 'day'
      where not isempty(o.days)
    ), part as materialized (
      select c.source_id, s.series_id, coalesce(lower(part), '-infinity') as start, coalesce(upper(part), 'infinity') as "end"
      from cell c join usage.series s using (scope_id) cross join lateral unnest(c.days) part
    ), unpriced as materialized (
      select p.source_id, r.usage_date, r.traces
      from part p
      -- Offset: by series, each by its key. Postgres expects more days than there are, and would read all records.
      cross join lateral (
        select r.bucket_start as usage_date, r.traces from usage.dated_record r
        where r.series_id = p.series_id and r.bucket_start >= p.start and r.bucket_start < p."end" and r.traces > 0
        offset 0
      ) r
      union all
      select c.source_id, day, h.traces
      from cell c
      join usage.trace_scope o on o.source_id = c.source_id and o.workspace_id = c.workspace_id and o.group_by = 'workspace'
       and o.stride = 'hour'
      join usage.hour_state t on t.scope_id = o.scope_id
      left join usage.day_state d on d.scope_id = c.scope_id
      cross join lateral usage.days_of(c.days * usage.days_made_of_hours(t.whole_days, d.loaded, d.unverified)) day
      cross join lateral usage.traces_of_hours(array(select series_id from usage.series where scope_id = o.scope_id), day) h (traces)
      where h.traces > 0
    )
    select s.source_id, (select count(*)::integer from usage.price) as prices, count(distinct u.usage_date)::integer as days,
           coalesce(sum(u.traces), 0)::bigint as traces, to_char(min(u.usage_date), 'YYYY-MM-DD') as "firstDay",
           to_char(max(u.usage_date), 'YYYY-MM-DD') as "lastDay"
    from usage.source s left join unpriced u using (source_id)
    group by s.source_id`;
}

export function lacksPriceIn(
  sourceId: RawBuilder<unknown>,
  monthStart: RawBuilder<unknown>,
): RawBuilder<boolean> {
  return sql`(not exists (
    select from usage.price
    where coalesce(source_id, ${sourceId}) = ${sourceId} and daterange(valid_from, valid_to)
      && daterange(${monthStart}::date, (${monthStart}::date + interval '1 month')::date)
  ) and exists (
    select from usage.trace_scope counted join usage.series using (scope_id) join usage.dated_record record using (series_id)
    where counted.source_id = ${sourceId} and counted.group_by = 'workspace' and counted.stride = 'day' and record.traces > 0
      and record.bucket_start >= ${monthStart}::date and record.bucket_start < (${monthStart}::date + interval '1 month')::date
  ))`;
}

export interface PriceGap {
  readonly sku: string;
  readonly source: string | null;
  readonly workspace: string | null;
  /** ISO days; the end is not included. */
  readonly from: string;
  readonly to: string;
}

export async function priceGaps(db: Database): Promise<PriceGap[]> {
  return query<PriceGap>(db)`
    with scope as (
      select sku_id, source_id, workspace_id, range_agg(daterange(valid_from, valid_to)) as days
      from usage.price group by sku_id, source_id, workspace_id
    )
    select k.name as sku, s.slug as source, e.external_id as workspace, to_char(lower(gap), 'YYYY-MM-DD') as "from",
           to_char(upper(gap), 'YYYY-MM-DD') as "to"
    from scope p
    join usage.sku k using (sku_id)
    left join usage.source s on s.source_id = p.source_id
    left join usage.entity e on e.entity_id = p.workspace_id
    cross join lateral (
      select coalesce(range_agg(days), '{}') as days from scope w
      where w.sku_id = p.sku_id and w.workspace_id is null
        and (w.source_id is null or (w.source_id = p.source_id and p.workspace_id is not null))
        and (p.source_id is not null)
    ) wider
    cross join lateral unnest(datemultirange(range_merge(p.days)) - p.days - wider.days) gap
    order by 1, 2 nulls first, 3 nulls first, 4
  `;
}

export async function endingPrices(
  db: Database,
  { sourceId, withinDays }: { sourceId: number; withinDays: number },
): Promise<{ measure: PricedMeasure; lastDay: string }[]> {
  return query<{ measure: PricedMeasure; lastDay: string }>(db)`
    select measure, (min(upper(days)) - 1)::text as "lastDay"
    from (
      select measure, range_merge(range_agg(days)) as days from usage.measured_price
      where source_id = ${sourceId} group by measure, workspace_entity_id
    ) m
    where upper(days) <= (now() at time zone 'UTC')::date + ${withinDays}::integer and not usage.is_on_no_invoice(measure, upper(days))
    group by measure order by 1
  `;
}

export async function unpricedMeasures(db: Database, source: string): Promise<string[]> {
  return queryValues<string>(db)`
    select distinct measure from reporting.usage_bill_monthly
    where source_id = ${source} and line = 'unpriced' and service <> 'traces'
      and month_start >= (date_trunc('month', now() at time zone 'UTC') - interval '1 month')::date
    order by 1
  `;
}

/** First UTC day (ISO) on which the platform charges deployments by units that it does not report. */
export async function deploymentUnitsSince(db: Database): Promise<string> {
  const rows = await query<{ day: string }>(db)`select usage.deployment_units_since()::text as day`;
  return (rows[0] as { day: string }).day;
}
