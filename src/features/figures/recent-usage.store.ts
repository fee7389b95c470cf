import { sql } from "kysely";
import { type Database, queryOne } from "../../core/store/db/query.ts";
import { PROVED_DAYS } from "../../core/store/figures/loaded.ts";

interface RecentDay {
  readonly source: string;
  readonly date: string;
  /** Null: the day of a workspace is not loaded. */
  readonly traces: number | null;
  readonly isFinal: boolean;
}

interface RecentWorkspace {
  readonly source: string;
  readonly id: string;
  readonly name: string | null;
  readonly traces: readonly number[];
}

/** A figure is null if a day that it needs is not loaded. */
interface MonthToDate {
  readonly source: string;
  readonly month: string;
  readonly traces: number | null;
  readonly least: number;
  readonly provisional: number | null;
  readonly ended: number | null;
  readonly days: number;
  readonly before: number | null;
}

interface Claimed {
  readonly source: string;
  readonly month: string;
  readonly isFinal: boolean;
  /** Each day of each workspace equals the export or totals. */
  readonly isProved: boolean;
  readonly isClosed: boolean;
}

interface LastMonth extends Claimed {
  /** Null: a day is not loaded. */
  readonly traces: number | null;
  readonly least: number;
}

/** Cost at imported prices. `isFinal` and `isProved` are about its usage. */
interface MonthCost extends Claimed {
  readonly currency: string;
  readonly cost: string;
}

/**
 * Recent usage of all sources, read in one statement so that days and months are of one instant. It equals the views below, but
 * compares the loaded days of each workspace as a set.
 */
export interface RecentUsage {
  readonly days: readonly RecentDay[];
  readonly workspaces: readonly RecentWorkspace[];
  readonly months: readonly MonthToDate[];
  readonly before: readonly LastMonth[];
  readonly costs: readonly MonthCost[];
}

export async function recentUsage(
  db: Database,
  { days, top }: { days: number; top: number },
): Promise<RecentUsage> {
  const whole = (column: string) =>
    sql`case when count(${sql.ref(column)}) = count(*) then sum(${sql.ref(column)})::bigint end`;
  return queryOne<RecentUsage>(db)`
    with t as materialized (
      select *, datemultirange(daterange(recent, next_month)) as recent_days,
             datemultirange(daterange(month, next_month)) as month_days, datemultirange(daterange(last_month, month)) as last_month_days,
             datemultirange(daterange(last_month, same_until)) as same_days
      from (
        -- A shorter month before has fewer days.
        select *, least(last_month + (today - month), month) as same_until, least(recent, last_month) as first
        from (
          select today, today - ${days - 1}::integer as recent, date_trunc('month', today::timestamp)::date as month,
                 (date_trunc('month', today::timestamp) - interval '1 month')::date as last_month,
                 (date_trunc('month', today::timestamp) + interval '1 month')::date as next_month
          from (select (now() at time zone 'UTC')::date as today) n
        ) n
      ) n
    ),
    cell as materialized (
      select row_number() over () as cell, x.slug as source, x.workspace_id as id, x.workspace_name as name, x.data_start,
             x.day_scope_id, x.hour_scope_id, d.days, d.days * x.loaded as loaded, d.days * x.final as final,
             ${PROVED_DAYS} * x.own_days as proved, d.days * x.days_of_hours as of_hours
      from usage.trace_cell x
      left join usage.day_proof p on p.scope_id = x.day_scope_id
      cross join t
      cross join lateral (select x.expected * datemultirange(daterange(t.first, t.next_month)) as days offset 0) d
      where x.group_by = 'workspace'
    ),
    -- A loaded day without traces has no row.
    figure as materialized (
      select f.cell, f.source, f.day, f.traces, f.final @> f.day as is_final
      from (
        select c.*, r.bucket_start as day, r.traces
        from cell c
        cross join t
        join usage.series s on s.scope_id = c.day_scope_id
        join usage.dated_record r using (series_id)
        where r.bucket_start >= t.first and r.bucket_start <= t.today and c.loaded @> r.bucket_start
        union all
        select c.*, day, usage.traces_of_hours(array(select series_id from usage.series where scope_id = c.hour_scope_id), day)
        from cell c
        cross join lateral usage.days_of(c.of_hours) day
      ) f
    ),
    day as materialized (
      select source, day as date, loaded @> day as is_loaded, final @> day as is_final
      from (
        select source, range_agg(days) as days, range_intersect_agg(loaded + ('{(,)}' - days)) as loaded,
               range_intersect_agg(final + ('{(,)}' - days)) as final
        from cell group by 1
      ) c
      cross join t
      cross join lateral usage.days_of(c.days * t.recent_days) day
    ),
    workspace as materialized (
      select c.*, row_number() over (partition by c.source order by f.traces desc, c.id collate "C") as place
      from cell c
      join (select cell, sum(traces) as traces from figure cross join t where day >= recent group by 1) f using (cell)
      where f.traces > 0
    ),
    -- Null: some needed days are not loaded, or none is.
    month as materialized (
      select c.*, c.days && t.month_days as is_under_way, c.days * t.last_month_days as days_before,
             case when w.is_whole and c.loaded && t.month_days then coalesce(f.traces, 0) end as traces,
             coalesce(f.traces, 0) as least, f.traces - coalesce(f.final_traces, 0) as provisional,
             case when w.is_whole and c.loaded && w.ended_days then coalesce(f.ended, 0) end as ended,
             case when c.loaded @> t.same_days and c.loaded && t.same_days then coalesce(f.same_days, 0) end as same_days,
             coalesce(f.before, 0) as before
      from cell c
      cross join t
      left join (
        select cell, sum(traces) filter (where day >= month) as traces,
               sum(traces) filter (where day >= month and is_final) as final_traces,
               sum(traces) filter (where day >= month and day < today) as ended,
               sum(traces) filter (where day >= last_month and day < same_until) as same_days,
               sum(traces) filter (where day >= last_month and day < month) as before
        from figure cross join t group by 1
      ) f using (cell)
      cross join lateral (
        select ended_days, c.loaded @> ended_days as is_whole
        from greatest(t.month, c.data_start) begun
        cross join lateral datemultirange(daterange(least(begun, t.today), t.today)) ended_days
      ) w
    )
    select (
      select coalesce(json_agg(d order by d.source, d.date), '[]') from (
        select d.source, d.date::text, case when d.is_loaded then coalesce(f.traces, 0) end as traces, d.is_final as "isFinal"
        from day d
        left join (select source, day as date, sum(traces)::bigint as traces from figure group by 1, 2) f using (source, date)
      ) d
    ) as days, (
      select coalesce(json_agg(w order by w.source, w.place), '[]') from (
        select w.source, w.place, w.id, w.name, u.traces
        from workspace w
        cross join lateral (
          select json_agg(coalesce(f.traces, 0) order by d.date) as traces
          from day d
          left join (select day as date, sum(traces)::bigint as traces from figure where cell = w.cell group by 1) f using (date)
          where d.source = w.source
        ) u
        where w.place <= ${top}
      ) w
    ) as workspaces, (
      select coalesce(json_agg(m order by m.source), '[]') from (
        select m.source, to_char(t.month, 'YYYY-MM') as month, ${whole("m.traces")} as traces, sum(m.least)::bigint as least,
               sum(m.provisional)::bigint as provisional, ${whole("m.ended")} as ended, t.same_until - t.last_month as days,
               ${whole("m.same_days")} as before
        from month m cross join t where m.is_under_way group by m.source, t.month, t.same_until, t.last_month
      ) m
    ) as months, (
      select coalesce(json_agg(b), '[]') from (
        select m.source, to_char(t.last_month, 'YYYY-MM') as month,
               case when bool_and(m.loaded @> m.days_before) then sum(m.before)::bigint end as traces, sum(m.before)::bigint as least,
               bool_and(m.final @> m.days_before) as "isFinal", bool_and(m.proved @> m.days_before) as "isProved",
               exists (
                 select from usage.close c join usage.source s using (source_id)
                 where s.slug = m.source and c.month_start = t.last_month
               ) as "isClosed"
        from month m cross join t where not isempty(m.days_before) group by m.source, t.last_month
      ) b
    ) as before, (
      select coalesce(json_agg(c order by c.source, c.currency), '[]') from (
        select s.slug as source, to_char(c.month_start, 'YYYY-MM') as month, c.currency, c.cost::text, c.is_closed as "isClosed",
               coalesce(x.is_final, false) as "isFinal", coalesce(x.is_proved, false) as "isProved"
        from (
          select source_id, month_start, currency, sum(cost) as cost, bool_and(is_closed) as is_closed, array_agg(distinct measure) as measures
          from usage.charge_day where month_start >= (select last_month from t) group by 1, 2, 3
        ) c
        join usage.source s using (source_id)
        cross join t
        -- Claims cover the month before only: this month may change.
        cross join lateral (
          select bool_and(o.final @> d.days) as is_final, bool_and(o.proved @> d.days) as is_proved
          from usage.bill_cell o
          cross join lateral (select o.expected * t.last_month_days as days offset 0) d
          where c.month_start = t.last_month and o.source_id = c.source_id
            and o.meter in (select unnest(usage.meters_of_measure(measure)) from unnest(c.measures) measure)
        ) x
      ) c
    ) as costs
  `;
}
