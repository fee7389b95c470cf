import { type RawBuilder, sql } from "kysely";
import type { Days } from "../../domain/time/days.ts";
import { cellsOf, type UsageCells } from "./records.ts";

export type OfDay = (day: RawBuilder<unknown>) => RawBuilder<unknown>;

/** In place of an entity. */
export const NONE = sql.lit(-1);
export const UNLOADED = sql.lit(-2);
const REST = sql.lit(-3);
export const ADJUSTED = sql.lit(-4);

/** SELECT of the place of each id. `costs`: SELECT of `key` and `cost`. */
export function placedBy(costs: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
    select t.key, row_number() over (order by t.cost desc nulls last, e.external_id collate "C") as place, t.cost
    from (${costs}) t join usage.entity e on e.entity_id = t.key`;
}

/**
 * CTEs `part` (cost by `key`, `bucket`, `is_before`) and `placed` (the place of each id): traces with an id at the price of their day,
 * in the order of the views (`usage.cost_up_to`); and what that leaves of the workspaces' costs. Of the range before only the whole is
 * read: the records of its ids would take as long again.
 *
 * Most days have one price. Then traces are added up before anything is multiplied: by id and days of one price, by workspace and day,
 * and by day for the first ids. What the others have in a bucket is the difference. Where a volume tier begins within the day, or hours
 * make up a day, each record is divided by itself.
 */
export function dividedByIds(given: {
  of: UsageCells;
  range: Days;
  bucket: OfDay;
  isBefore: OfDay;
  top: number;
}): RawBuilder<unknown> {
  const { of, range, bucket, isBefore, top } = given;
  const inBucket = (day: RawBuilder<unknown>) => sql`case when not ${isBefore(day)} then ${bucket(day)} end`;
  const [from, to] = [sql`${range.from}::date`, sql`${range.to}::date`];
  // Offset: by series, each by its key, whatever Postgres expects.
  const recordsOf = (start: RawBuilder<unknown>, end: RawBuilder<unknown>) => sql`
    cross join lateral (
      select t.bucket_start as day, t.traces from usage.dated_record t
      where t.series_id = m.series_id and t.bucket_start >= ${start} and t.bucket_start < ${end} offset 0
    ) t`;
  const unnamed = sql`select entity_id from usage.entity where source_id = ${of.sourceId} and dimension = ${of.by} and external_id = ''`;
  return sql`
    ${cellsOf(of)},
    divided_time as materialized (
      select c.workspace_id as workspace_key, x.loaded, not isempty(x.days_of_hours) as by_hours
      from usage.trace_cell x join cell c using (day_scope_id)
      where x.slug = ${of.source} and x.group_by = ${of.by}
    ),
    member as materialized (
      select c.workspace_id as workspace_key, s.series_id, s.entity_id as key
      from cell c join usage.series s on s.scope_id = c.day_scope_id
      where s.entity_id <> all (array(${unnamed}))
    ),
    rate as materialized (
      select r.*, coalesce(d.loaded @> r.day, false) as is_loaded from charge r left join divided_time d using (workspace_key)
    ),
    -- One row a day, of all SKUs together.
    flat as materialized (
      select workspace_key, day, is_loaded, sum(unit_price) as unit_price from rate
      where unit_price is not null and day >= ${from} group by 1, 2, 3
    ),
    flat_part as materialized (
      select workspace_key, unit_price, lower(part) as start, upper(part) as "end"
      from (select workspace_key, unit_price, range_agg(daterange(day, day + 1)) as days from flat group by 1, 2) f
      cross join lateral unnest(days) part
    ),
    by_record as materialized (
      select d.key, r.is_loaded, ${bucket(sql`r.day`)} as bucket,
             sum(usage.cost_up_to(d.counted, r.unit_price, r.traces, r.cost)
                   - usage.cost_up_to(d.counted - d.traces, r.unit_price, r.traces, r.cost)) as cost
      from (
        select d.*, sum(d.traces) over (
          partition by d.workspace_key, d.day order by usage.shown_id(e.external_id) collate "C"
        ) as counted
        from (
          select m.key, m.workspace_key, t.day, t.traces, true as is_own
          from (select distinct workspace_key, day from rate where unit_price is null and day >= ${from}) r
          join member m using (workspace_key)
          ${recordsOf(sql`r.day`, sql`r.day + 1`)}
          union all
          select f.entity_id, c.workspace_id, f.usage_date, f.traces, false
          from divided_time d
          join cell c on c.workspace_id = d.workspace_key
          join usage.figure_of_hours f using (day_scope_id)
          where d.by_hours and f.slug = ${of.source} and f.group_by = ${of.by} and f.usage_date >= ${from} and f.usage_date < ${to}
            and f.entity_id <> all (array(${unnamed}))
        ) d
        join usage.entity e on e.entity_id = d.key
      ) d
      join rate r on r.workspace_key = d.workspace_key and r.day = d.day and (r.unit_price is null or not d.is_own)
      group by 1, 2, 3
    ),
    placed as materialized (${placedBy(sql`
      select key, sum(cost) as cost
      from (
        select m.key, p.unit_price * x.traces as cost
        from flat_part p join member m using (workspace_key)
        cross join lateral (
          select sum(t.traces) as traces from usage.dated_record t
          where t.series_id = m.series_id and t.bucket_start >= p.start and t.bucket_start < p."end"
        ) x
        where x.traces is not null
        union all
        select key, cost from by_record
      ) k
      group by key
    `)}),
    -- Of all ids together.
    divided as materialized (
      select is_loaded, bucket, sum(cost) as cost
      from (
        select r.is_loaded, ${bucket(sql`r.day`)} as bucket, r.unit_price * u.traces as cost
        from (
          select m.workspace_key, t.day, sum(t.traces) as traces from member m ${recordsOf(from, to)} group by 1, 2
        ) u
        join flat r on r.workspace_key = u.workspace_key and r.day = u.day
        union all
        select is_loaded, bucket, cost from by_record
      ) b
      group by 1, 2
    ),
    first_id as materialized (select key from placed where place <= ${top} and cost is not null),
    course as materialized (
      select key, bucket, sum(cost) as cost
      from (
        select u.key, ${bucket(sql`r.day`)} as bucket, r.unit_price * u.traces as cost
        from (select m.key, m.workspace_key, t.day, t.traces from member m join first_id using (key) ${recordsOf(from, to)}) u
        join flat r on r.workspace_key = u.workspace_key and r.day = u.day
        union all
        select key, bucket, cost from by_record join first_id using (key)
      ) b
      group by 1, 2
    ),
    part as materialized (
      select key, bucket, false as is_before, cost, true as is_final from course
      union all
      -- The others are counted here; what they cost stands in one row a bucket.
      select key, null, false, 0, true from placed where key not in (select key from first_id)
      union all
      select ${REST}, bucket, false, sum(cost), true
      from (select bucket, cost from divided union all select bucket, -cost from course) r
      where exists (select from placed where key not in (select key from first_id))
      group by bucket
      union all
      select case when is_adjustment then ${ADJUSTED} when is_loaded then ${NONE} else ${UNLOADED} end, bucket, is_before, sum(cost),
             bool_and(is_final)
      from (
        -- What a dimension divides in a closed month are the traces of now: what was closed less these is an adjustment.
        select r.is_loaded, p.is_adjustment, ${inBucket(sql`r.day`)} as bucket, ${isBefore(sql`r.day`)} as is_before,
               case when p.is_adjustment then r.cost - n.cost else n.cost end as cost, r.is_final
        from rate r
        cross join lateral (select usage.cost_up_to(r.traces_now, r.unit_price, r.traces, r.cost) as cost) n
        join (values (false), (true)) p (is_adjustment) on r.is_closed or not p.is_adjustment
        union all
        select is_loaded, false, bucket, false, -cost, true from divided
      ) left_over
      group by 1, 2, 3
    )`;
}
