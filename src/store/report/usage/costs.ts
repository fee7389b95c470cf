import { type RawBuilder, sql } from "kysely";
import type { Days } from "../../../domain/time/days.ts";
import type { Database } from "../../db/database.ts";
import { cellsOf, nameOf, type UsageOf } from "./records.ts";

export interface CostLine {
  /**
   * `none`: what is left of the workspaces' costs on loaded days (unattributed traces, rounding). `unloaded`: the same on days
   * that are not loaded by this dimension. `rest`: all ids after the first ones.
   */
  readonly kind: "id" | "none" | "unloaded" | "rest";
  readonly key: number | null;
  readonly id: string | null;
  readonly name: string | null;
  readonly ids: number;
  /** First day of a bucket; null: the whole range. */
  readonly bucket: string | null;
  /** Exact decimals: an estimate is not rounded. */
  readonly cost: string;
  /** Of the range before; null of a bucket. */
  readonly costBefore: string | null;
  /** Whether all of it stays as it is until a restatement or other prices. */
  readonly isFinal: boolean;
}

/** Currencies that usage of a source can cost in: of valid prices and of closed months. */
export async function currenciesOf(db: Database, sourceId: number): Promise<string[]> {
  const { rows } = await sql<{ currency: string }>`
    select currency from usage.price where source_id is null or source_id = ${sourceId}
    union
    select c.currency from usage.closed_charge c join usage.month_close m using (close_id) where m.source_id = ${sourceId}
    order by 1
  `.execute(db);
  return rows.map(({ currency }) => currency);
}

/**
 * What the ids cost in one currency, the most first, for the range and for each of its buckets. All lines of a range add up to
 * the sum of `reporting.fct_cost_..._daily`, and so to that of the workspaces, to the last digit. The rates are the same as in those
 * views (`usage.flat_rate`, `usage.stepped_cost`), but as one row a day, so that each record finds its own by equality.
 */
export async function usageCosts(
  db: Database,
  of: UsageOf,
  given: { range: Days; before: Days; per: "day" | "month"; currency: string; top: number; masked: boolean },
): Promise<CostLine[]> {
  const { range, before, per, currency, top, masked } = given;
  const span = { from: before.from, to: range.to };
  const isBefore = (day: RawBuilder<unknown>) => sql`${day} < ${range.from}::date`;
  const bucket = (day: RawBuilder<unknown>) => (per === "day" ? day : sql`usage.month_of(${day})`);
  const { rows } = await sql<CostLine>`
    with ${cellsOf(of)},
    place as materialized (
      select c.day_scope_id, c.workspace_id as workspace_key, x.workspace_id, x.days + x.days_of_hours as loaded
      from usage.cell_time x join cell c using (day_scope_id)
      where x.slug = ${of.source} and x.group_by = ${of.by}
    ),
    stepped as materialized (
      select * from usage.stepped_cost
      where slug = ${of.source} and usage_date >= ${span.from}::date and usage_date < ${span.to}::date and currency = ${currency}
    ),
    rate as materialized (
      select r.*, p.day_scope_id, p.workspace_key, p.loaded @> r.day as is_loaded
      from (
        select workspace_id, sku, day, unit_price, null::bigint as whole_traces, null::numeric as whole_cost, true as is_flat
        from usage.flat_rate
        cross join lateral usage.days_of(days * datemultirange(daterange(${span.from}::date, ${span.to}::date))) day
        where slug = ${of.source} and currency = ${currency}
        union all
        -- whole_traces: only where the price is the average one of a day.
        select workspace_id, sku, usage_date, unit_price, case when unit_price is null then traces end,
               case when unit_price is null then cost end, false
        from stepped
      ) r
      join place p using (workspace_id)
    ),
    whole as materialized (
      select w.workspace_key, w.day, w.is_loaded, w.cost, w.is_final
      from (
        select r.workspace_key, r.day, r.is_loaded, r.unit_price * u.traces as cost, usage.is_final(u.status) as is_final
        from usage.workspace_usage u
        join rate r on r.workspace_id = u.workspace_id and r.day = u.usage_date and r.is_flat
        where u.slug = ${of.source} and u.usage_date >= ${span.from}::date and u.usage_date < ${span.to}::date
        union all
        select p.workspace_key, s.usage_date, p.loaded @> s.usage_date, s.cost, s.is_final
        from stepped s join place p using (workspace_id)
      ) w
    ),
    part as materialized (${of.by === "workspace" ? wholeByWorkspace(bucket, isBefore) : dividedByIds({ of, span, bucket, isBefore })}),
    total as (
      select key, sum(cost) filter (where not is_before) as cost, sum(cost) filter (where is_before) as cost_before
      from part where key > 0 group by key
    ),
    placed as (
      select t.key, row_number() over (order by t.cost desc nulls last, e.external_id collate "C") as place, t.cost
      from total t join usage.entity e on e.entity_id = t.key
    ),
    line as (
      select case when p.key = ${NONE} then 'none' when p.key = ${UNLOADED} then 'unloaded'
                  when t.place <= ${top} and t.cost is not null then 'id' else 'rest' end as kind,
             case when t.place <= ${top} and t.cost is not null then t.place end as place, p.*
      from part p left join placed t using (key)
    ),
    folded as (
      select kind, place, case when kind = 'id' then min(key) end as key, bucket, grouping(bucket) = 1 as is_whole,
             count(distinct key) filter (where key > 0 and not is_before)::integer as ids,
             coalesce(sum(cost) filter (where not is_before), 0) as cost, coalesce(sum(cost) filter (where is_before), 0) as cost_before,
             coalesce(bool_and(is_final) filter (where not is_before), true) as is_final
      from line
      group by grouping sets ((kind, place), (kind, place, bucket))
    )
    select f.kind, f.key, usage.shown_id(e.external_id) as id, ${nameOf(of, masked)} as name, f.ids,
           to_char(f.bucket, 'YYYY-MM-DD') as bucket, trim_scale(f.cost)::text as cost,
           case when f.is_whole then trim_scale(f.cost_before)::text end as "costBefore", f.is_final as "isFinal"
    from folded f
    left join usage.entity e on e.entity_id = f.key
    left join lateral (
      select n.name from usage.entity_name n where n.entity_id = f.key
      order by n.last_bucket desc, n.fetch_number desc, n.name limit 1
    ) n on true
    where f.is_whole or f.bucket is not null
    order by f.is_whole desc, array_position('{id,none,unloaded,rest}', f.kind), f.place, f.bucket
  `.execute(db);
  return rows;
}

/** In place of an entity. */
const NONE = sql.lit(-1);
const UNLOADED = sql.lit(-2);

type OfDay = (day: RawBuilder<unknown>) => RawBuilder<unknown>;

function wholeByWorkspace(bucket: OfDay, isBefore: OfDay): RawBuilder<unknown> {
  return sql`
    select workspace_key as key, case when not ${isBefore(sql`day`)} then ${bucket(sql`day`)} end as bucket,
           ${isBefore(sql`day`)} as is_before, sum(cost) as cost, bool_and(is_final) as is_final
    from whole group by 1, 2, 3`;
}

/** Traces with an id, times their rate; and what that leaves of the workspaces' costs. */
function dividedByIds(given: {
  of: UsageOf;
  span: Days;
  bucket: OfDay;
  isBefore: OfDay;
}): RawBuilder<unknown> {
  const { of, span, bucket, isBefore } = given;
  const inBucket = (day: RawBuilder<unknown>) => sql`case when not ${isBefore(day)} then ${bucket(day)} end`;
  return sql`
    with divided as materialized (
      select d.key, r.is_loaded, ${inBucket(sql`r.day`)} as bucket, ${isBefore(sql`r.day`)} as is_before,
             sum(case when r.whole_traces is null then r.unit_price * d.traces
                      else round(r.whole_cost * d.traces / r.whole_traces, 10) end) as cost
      from (
        select s.entity_id as key, s.scope_id as day_scope_id, t.bucket_start as day, t.traces
        from cell c
        join usage.series s on s.scope_id = c.day_scope_id
        join usage.dated_record t using (series_id)
        where t.bucket_start >= ${span.from}::date and t.bucket_start < ${span.to}::date
        union all
        select f.entity_id, f.day_scope_id, f.usage_date, f.traces
        from usage.figure_of_hours f join cell using (day_scope_id)
        where f.slug = ${of.source} and f.group_by = ${of.by}
          and f.usage_date >= ${span.from}::date and f.usage_date < ${span.to}::date
      ) d
      join rate r on r.day_scope_id = d.day_scope_id and r.day = d.day
      join usage.entity e on e.entity_id = d.key and e.external_id <> ''
      group by 1, 2, 3, 4
    )
    select key, bucket, is_before, sum(cost) as cost, true as is_final from divided group by 1, 2, 3
    union all
    select case when is_loaded then ${NONE} else ${UNLOADED} end, bucket, is_before, sum(cost), bool_and(is_final)
    from (
      select is_loaded, ${inBucket(sql`day`)} as bucket, ${isBefore(sql`day`)} as is_before, cost, is_final from whole
      union all
      select is_loaded, bucket, is_before, -cost, true from divided
    ) left_over
    group by 1, 2, 3`;
}
