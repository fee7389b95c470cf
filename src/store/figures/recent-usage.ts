import { sql } from "kysely";
import type { Database } from "../db/database.ts";

/** Traces of one UTC day, all workspaces of a source together. */
interface RecentDay {
  readonly source: string;
  readonly date: string;
  /** Null where a workspace is not loaded: it is not zero. */
  readonly traces: number | null;
  readonly isFinal: boolean;
}

/** One of the workspaces that used most lately. */
interface RecentWorkspace {
  readonly source: string;
  readonly id: string;
  readonly name: string | null;
  /** By day, in the order of the source's days; 0 where a day is not loaded. */
  readonly traces: readonly number[];
}

/** The calendar month under way; each figure is null where a day that it needs is not loaded. */
interface MonthToDate {
  readonly source: string;
  /** Such as 2026-03. */
  readonly month: string;
  readonly traces: number | null;
  readonly provisional: number | null;
  /** Of its days that are over, and how many these are. */
  readonly ended: number | null;
  readonly days: number;
  /** Of as many days of the month before. */
  readonly before: number | null;
  /** To the month's end, at the rate of its final days. */
  readonly runRate: number | null;
}

/** The calendar month before the one under way. */
interface LastMonth {
  readonly source: string;
  /** Such as 2026-02. */
  readonly month: string;
  /** Null where a day is not loaded. */
  readonly traces: number | null;
  readonly isFinal: boolean;
  /** Each day of each workspace is compared with the export or with totals, and equal. */
  readonly isProved: boolean;
  readonly isClosed: boolean;
}

/** What the usage of a month costs at imported prices, as far as it has one. */
interface MonthCost {
  readonly source: string;
  readonly month: string;
  readonly currency: string;
  /** An exact decimal. */
  readonly cost: string;
}

/** Usage of all sources lately: one statement, so that days and months are of one instant, and planned once. */
export interface RecentUsage {
  /** The last days up to today, from `reporting.fct_usage_workspace_daily`. */
  readonly days: readonly RecentDay[];
  /** The first of them, the most first. */
  readonly workspaces: readonly RecentWorkspace[];
  /** From `reporting_detail.usage_month_to_date`, over the workspaces of each source. */
  readonly months: readonly MonthToDate[];
  /** From `reporting.fct_usage_workspace_daily`. */
  readonly before: readonly LastMonth[];
  /** Of both months, from the charges that the bill is made of. */
  readonly costs: readonly MonthCost[];
}

export async function recentUsage(
  db: Database,
  { days, top }: { days: number; top: number },
): Promise<RecentUsage> {
  const whole = (column: string) =>
    sql`case when count(${sql.ref(column)}) = count(*) then sum(${sql.ref(column)})::bigint end`;
  const lastMonth = sql`(date_trunc('month', now() at time zone 'UTC') - interval '1 month')::date`;
  const { rows } = await sql<RecentUsage>`
    with recent as materialized (
      select source_id as source, workspace_id as id, workspace_name as name, usage_date, traces, is_final
      from reporting.fct_usage_workspace_daily
      where usage_date > (now() at time zone 'UTC')::date - ${days}::integer
    ),
    workspace as (
      select r.*, row_number() over (partition by r.source order by r.traces desc, r.id collate "C") as place
      from (select source, id, max(name) as name, sum(traces) as traces from recent group by 1, 2) r
    )
    select (
      select coalesce(json_agg(d order by d.source, d.date), '[]') from (
        select source, usage_date::text as date, ${whole("traces")} as traces, bool_and(is_final) as "isFinal"
        from recent group by 1, 2
      ) d
    ) as days, (
      select coalesce(json_agg(w order by w.source, w.place), '[]') from (
        select w.source, w.place, w.id, w.name, json_agg(coalesce(r.traces, 0) order by d.usage_date) as traces
        from workspace w
        join (select distinct source, usage_date from recent) d using (source)
        left join recent r using (source, id, usage_date)
        where w.place <= ${top} and w.traces > 0
        group by 1, 2, 3, 4
      ) w
    ) as workspaces, (
      select coalesce(json_agg(m order by m.source), '[]') from (
        select source_id as source, to_char(month_start, 'YYYY-MM') as month, ${whole("traces")} as traces,
               sum(provisional_traces)::bigint as provisional, ${whole("ended_traces")} as ended, max(days_compared) as days,
               ${whole("previous_same_days_traces")} as before, ${whole("run_rate_traces")} as "runRate"
        from reporting_detail.usage_month_to_date group by 1, 2
      ) m
    ) as months, (
      select coalesce(json_agg(b), '[]') from (
        select source_id as source, to_char(${lastMonth}, 'YYYY-MM') as month, ${whole("traces")} as traces,
               bool_and(is_final) as "isFinal",
               bool_and(proved_at is not null) as "isProved",
               exists (
                 select from usage.month_close c join usage.source s using (source_id)
                 where s.slug = d.source_id and c.month_start = ${lastMonth}
               ) as "isClosed"
        from reporting.fct_usage_workspace_daily d
        where usage_date >= ${lastMonth} and usage_date < date_trunc('month', now() at time zone 'UTC')::date
        group by source_id
      ) b
    ) as before, (
      select coalesce(json_agg(c order by c.source, c.currency), '[]') from (
        select s.slug as source, to_char(c.month_start, 'YYYY-MM') as month, c.currency, sum(c.cost)::text as cost
        from usage.charge c join usage.source s using (source_id)
        where c.is_booked and c.month_start >= ${lastMonth} group by 1, 2, 3
      ) c
    ) as costs
  `.execute(db);
  return rows[0] as RecentUsage;
}
