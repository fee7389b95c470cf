import { type RawBuilder, sql } from "kysely";
import type { Days } from "../../domain/time/days.ts";
import type { Database } from "../db/database.ts";
import {
  ADJUSTED,
  dividedByIds,
  isJoined,
  joinByDay,
  NONE,
  type OfDay,
  placedBy,
  UNLOADED,
} from "./divided-costs.ts";
import { cellsOf, monthOf, nameOf, type UsageCells } from "./records.ts";

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

export interface Pricing {
  /** Of prices, and of charges that a close kept. */
  readonly currencies: readonly string[];
  /** Whether a charge may be more than traces times one price: by volume tiers, or as a month was closed. */
  readonly hasSteps: boolean;
}

export async function pricingOf(db: Database, sourceId: number): Promise<Pricing> {
  const { rows } = await sql<Pricing>`
    with closed as materialized (
      select distinct c.currency from usage.closed_charge c join usage.month_close m using (close_id) where m.source_id = ${sourceId}
    )
    select array(
             select currency from usage.price where source_id is null or source_id = ${sourceId}
             union select currency from closed order by 1
           ) as currencies,
           exists (select from usage.price_tier) or exists (select from closed) as "hasSteps"
  `.execute(db);
  return rows[0] as Pricing;
}

/**
 * What the ids cost in one currency, the most first, for the range and for each of its buckets. All lines of a range add up to
 * the sum of `reporting.fct_cost_..._daily`, and so to that of the workspaces, to the last digit. Rates are those of these views
 * (`usage.flat_rate`, `usage.stepped_cost`), but one row a day, so that each record finds its own by equality; and what nothing
 * can come of is left out, since planning it takes longer than reading the rest.
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
    hasSteps: boolean;
    top: number;
    masked: boolean;
  },
): Promise<CostLine[]> {
  const { range, before, per, currency, hasSteps, top, masked } = given;
  const span = { from: before.from, to: range.to };
  const isBefore = (day: RawBuilder<unknown>) => sql`${day} < ${range.from}::date`;
  const bucket = (day: RawBuilder<unknown>) => (per === "day" ? day : monthOf(day));
  const inSpan = (day: RawBuilder<unknown>) =>
    sql`${day} >= ${span.from}::date and ${day} < ${span.to}::date`;
  const ofWorkspaces = { ...of, by: "workspace" as const };
  const { rows } = await sql<CostLine>`
    with ${cellsOf(ofWorkspaces, "whole_cell")},
    whole_time as materialized (${timeOf(ofWorkspaces, "whole_cell")}),
    ${of.by === "workspace" ? sql`` : sql`${cellsOf(of)}, divided_time as materialized (${timeOf(of, "cell")}),`}
    stepped as materialized (${hasSteps ? steppedIn({ of, currency, inSpan }) : NO_STEPS}),
    flat as materialized (
      select w.workspace_key, p.unit_price,
             (p.days * w.loaded - ${hasSteps ? chargedMonths(sql`w.workspace_key`) : sql`'{}'::datemultirange`})
               * datemultirange(daterange(${span.from}::date, ${span.to}::date)) as days
      from usage.workspace_price p
      join whole_time w on w.workspace_key = p.workspace_entity_id
      where p.slug = ${of.source} and p.currency = ${currency} and not p.is_tiered
    ),
    rate as materialized (
      select r.*, ${of.by === "workspace" ? sql`true` : sql`coalesce(d.loaded @> r.day, false)`} as is_loaded
      from (
        select f.workspace_key, day, f.unit_price, null::bigint as whole, null::numeric as whole_cost, true as is_flat,
               false as is_closed
        from flat f cross join lateral usage.days_of(f.days) day
        union all
        -- whole: only where the price is the average one of a day.
        select workspace_key, usage_date, unit_price, case when unit_price is null then traces end,
               case when unit_price is null then cost end, false, is_closed
        from stepped
      ) r
      ${of.by === "workspace" ? sql`` : sql`left join divided_time d using (workspace_key)`}
    ),
    -- What a dimension divides in a closed month are the traces of now: what was closed less these is an adjustment.
    whole as materialized (
      select r.workspace_key, r.day, r.is_loaded, p.is_adjustment, r.is_closed or w.final @> r.day as is_final,
             p.sign * usage.cost_up_to(u.traces, r.unit_price, r.whole, r.whole_cost) as cost
      from (
        select c.workspace_id as workspace_key, t.bucket_start as day, t.traces
        from whole_cell c join usage.series s on s.scope_id = c.day_scope_id join usage.dated_record t using (series_id)
        where ${inSpan(sql`t.bucket_start`)}
        union all
        select c.workspace_id, f.usage_date, f.traces
        from whole_time w
        join whole_cell c on c.workspace_id = w.workspace_key
        join usage.figure_of_hours f using (day_scope_id)
        where w.by_hours and f.slug = ${of.source} and f.group_by = 'workspace' and ${inSpan(sql`f.usage_date`)}
      ) u
      ${joinByDay(of.by === "workspace" ? sql`(select * from rate where is_flat)` : sql`(select * from rate where is_flat or is_closed)`, "u")}
      join whole_time w on w.workspace_key = coalesce(u.workspace_key, 0)
      join (values (false, 1), (true, -1)) p (is_adjustment, sign) on r.is_closed or not p.is_adjustment
      where coalesce(u.traces, 0) > 0 and ${isJoined("u")}
      union all
      select s.workspace_key, s.usage_date, ${of.by === "workspace" ? sql`true, false` : sql`coalesce(d.loaded @> s.usage_date, false), s.is_closed`}, s.is_final, s.cost
      from stepped s ${of.by === "workspace" ? sql`` : sql`left join divided_time d using (workspace_key)`}
    ),
    ${of.by === "workspace" ? wholeByWorkspace(bucket, isBefore) : dividedByIds({ of, range, bucket, isBefore, hasSteps, top })},
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

/** Loaded and final days of each workspace, as the views of days have them. */
function timeOf({ source, by }: UsageCells, cells: "cell" | "whole_cell"): RawBuilder<unknown> {
  return sql`
    select c.workspace_id as workspace_key, x.workspace_id, x.loaded, x.final, not isempty(x.days_of_hours) as by_hours
    from usage.trace_cell x
    join ${sql.table(cells)} c using (day_scope_id)
    where x.slug = ${source} and x.group_by = ${by}`;
}

/** The rest of the costs, by workspace and day. */
function steppedIn(given: { of: UsageCells; currency: string; inSpan: OfDay }): RawBuilder<unknown> {
  const { of, currency, inSpan } = given;
  return sql`
    select w.workspace_key, s.usage_date, s.traces, s.cost, s.unit_price, s.is_final, s.is_closed
    from usage.stepped_cost s join whole_time w using (workspace_id)
    where s.slug = ${of.source} and s.currency = ${currency} and ${inSpan(sql`s.usage_date`)}`;
}

const NO_STEPS = sql`
  select null::integer as workspace_key, null::date as usage_date, null::bigint as traces, null::numeric as cost,
         null::numeric as unit_price, null::boolean as is_final, null::boolean as is_closed
  where false`;

function chargedMonths(workspace: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`coalesce(
    (select range_agg(m.days) from usage.charged_month m where m.workspace_entity_id = ${workspace}), '{}'::datemultirange
  )`;
}

/** CTEs `part` and `placed`, as `dividedByIds` gives them. */
function wholeByWorkspace(bucket: OfDay, isBefore: OfDay): RawBuilder<unknown> {
  return sql`
    part as materialized (
      select workspace_key as key, case when not ${isBefore(sql`day`)} then ${bucket(sql`day`)} end as bucket,
             ${isBefore(sql`day`)} as is_before, sum(cost) as cost, bool_and(is_final) as is_final
      from whole group by 1, 2, 3
    ),
    placed as (${placedBy(sql`select key, sum(cost) filter (where not is_before) as cost from part group by key`)})`;
}
