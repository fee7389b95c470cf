import { type RawBuilder, sql } from "kysely";
import type { Days } from "../../domain/time/days.ts";
import type { Database } from "../db/database.ts";
import { ADJUSTED, dividedByIds, NONE, type OfDay, placedBy, UNLOADED } from "./divided-costs.ts";
import { monthOf, nameOf, type UsageCells } from "./records.ts";

export interface CostLine {
  /**
   * `none`: traces without an id on loaded days. `unloaded`: the same on days that are not loaded by this dimension. `adjustment`:
   * in a closed month, what was closed less what the other lines have now. `rest`: all ids after the first ones.
   */
  readonly kind: "id" | "none" | "unloaded" | "adjustment" | "rest";
  readonly key: number | null;
  readonly id: string | null;
  readonly name: string | null;
  /** How many ids it stands for; of a bucket of the rest they are not counted. */
  readonly ids: number;
  /** First day of a bucket; null: the whole range. */
  readonly bucket: string | null;
  /** Exact decimals: an estimate is not rounded. */
  readonly cost: string;
  /** Of the range before; null of a bucket. Only their sum means something where a dimension divides the costs of workspaces. */
  readonly costBefore: string | null;
  /** Whether all of it stays as it is until a restatement or other prices. */
  readonly isFinal: boolean;
}

/** Currencies of prices, and of charges that a close kept. */
export async function currenciesOf(db: Database, sourceId: number): Promise<string[]> {
  const { rows } = await sql<{ currency: string }>`
    select currency from usage.price where source_id is null or source_id = ${sourceId}
    union select c.currency from usage.closed_charge c join usage.month_close m using (close_id) where m.source_id = ${sourceId}
    order by 1
  `.execute(db);
  return rows.map(({ currency }) => currency);
}

/**
 * What the ids cost in one currency, the most first, for the range and for each of its buckets. All lines of a range add up to
 * the sum of `fct_cost_..._daily`, and so to that of the workspaces, to the last digit.
 */
export async function usageCosts(
  db: Database,
  of: UsageCells,
  given: {
    range: Days;
    /** Right before the range. */
    before: Days;
    per: "day" | "month";
    currency: string;
    top: number;
    masked: boolean;
  },
): Promise<CostLine[]> {
  const { range, before, per, currency, top, masked } = given;
  const isBefore = (day: RawBuilder<unknown>) => sql`${day} < ${range.from}::date`;
  const bucket = (day: RawBuilder<unknown>) => (per === "day" ? day : monthOf(day));
  const { rows } = await sql<CostLine>`
    with charge as materialized (
      select workspace_id as workspace_key, usage_date as day, day_traces as traces, day_traces_now as traces_now, day_cost as cost,
             day_unit_price as unit_price, is_closed, is_final
      from usage.charge
      where source_id = ${of.sourceId} and usage_date >= ${before.from}::date and usage_date < ${range.to}::date
        and currency = ${currency} and measure = 'traces' and is_booked and day_traces is not null
        and ${of.workspaceId === null ? sql`true` : sql`workspace_id = ${of.workspaceId}`}
    ),
    ${of.by === "workspace" ? wholeByWorkspace(bucket, isBefore) : dividedByIds({ of, range, bucket, isBefore, top })},
    line as (
      select case when p.key = ${NONE} then 'none' when p.key = ${UNLOADED} then 'unloaded' when p.key = ${ADJUSTED} then 'adjustment'
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
    order by f.is_whole desc, array_position('{id,none,unloaded,adjustment,rest}', f.kind), f.place, f.bucket
  `.execute(db);
  return rows;
}

/** CTEs `part` and `placed`, as `dividedByIds` gives them. */
function wholeByWorkspace(bucket: OfDay, isBefore: OfDay): RawBuilder<unknown> {
  return sql`
    part as materialized (
      select workspace_key as key, case when not ${isBefore(sql`day`)} then ${bucket(sql`day`)} end as bucket,
             ${isBefore(sql`day`)} as is_before, sum(cost) as cost, bool_and(is_final) as is_final
      from charge group by 1, 2, 3
    ),
    placed as (${placedBy(sql`select key, sum(cost) filter (where not is_before) as cost from part group by key`)})`;
}
