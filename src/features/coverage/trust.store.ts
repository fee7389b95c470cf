import { sql } from "kysely";
import type { Meter } from "../../core/domain/usage/meter.ts";
import { isConfigured, isNeverRead } from "../../core/store/access/workspaces.ts";
import type { ServerCapability } from "../../core/store/catalog/server-capabilities.ts";
import {
  METER_STARTS,
  type MeterStarts,
  UNKNOWN_METERS,
  type UnknownMeter,
} from "../../core/store/catalog/source-meters.ts";
import { type Database, query } from "../../core/store/db/query.ts";
import { lacksPriceIn } from "../costs/prices.store.ts";

/** State of a source by day, over all dimensions of the workspaces that a close of the day includes. Days are ISO texts. */
export interface SourceTrust {
  readonly source: string;
  readonly dataStart: string;
  readonly today: string;
  /** Exclusive end: every earlier day from the data start on is final. */
  readonly finalUntil: string;
  /** Exclusive end: every earlier day is final and proved, by the export or by a total. */
  readonly provedUntil: string;
  /** Exclusive end: every earlier day is final, and proved or known to differ. */
  readonly comparedUntil: string;
  /**
   * Exclusive end: every earlier day after the newest closed month can be closed. It is final and compared with the export, and
   * no other usage keeps it open.
   */
  readonly reconciledUntil: string;
  readonly gapDays: number;
  /** Gap days without a fetch task. Days that a close left out, and those of workspaces that were never read, do not count. */
  readonly idleDays: number;
  readonly firstIdle: string | null;
  readonly lastIdle: string | null;
  readonly failedDays: number;
  /** Gap days without a fetch task in closed months that left their workspace out. */
  readonly leftOutDays: number;
  /** Gap days of workspaces to which access was never proved, except days that a close left out. */
  readonly neverReadDays: number;
  /**
   * Gaps of other meters that are loaded, except days that a close left out. `idleDays`: missing daily figures that no
   * fetch task will load. `requestedDays`: those that a task will load.
   */
  readonly otherGaps: readonly {
    readonly meter: Meter;
    readonly idleDays: number;
    readonly firstIdle: string | null;
    readonly lastIdle: string | null;
    readonly requestedDays: number;
  }[];
  /** Wanted meters for which it is unknown whether the server counts them. */
  readonly unknownMeters: readonly UnknownMeter[];
  /** Contradictions of the platform in open months. */
  readonly disagreements: number;
  /** Contradictions found in closed months since the close: nobody accepted them. */
  readonly disagreementsSince: number;
  readonly workspaceIds: readonly string[];
  readonly capabilities: readonly ServerCapability[];
  /** Supported meters with the start of their data, epoch ms. */
  readonly meters: MeterStarts;
  /** First day of the newest closed month, and the number of earlier open months. */
  readonly closedMonth: string | null;
  readonly monthsNotClosed: number;
  /** First day of the next month to close. `nextLacksPrice`: it has traces and no price. */
  readonly nextMonth: string;
  readonly nextLacksPrice: boolean;
}

/** Reads intervals instead of days, so years of history cost no more than a day. */
export async function trustOfSources(db: Database): Promise<SourceTrust[]> {
  return query<SourceTrust>(db)`
    with asked as (
      select i.scope_id,
             range_agg(daterange((t.period_start at time zone 'UTC')::date, (t.period_end at time zone 'UTC')::date)) as days
      from usage.fetch_task t
      left join usage.backfill b using (backfill_id)
      cross join unnest(t.scope_ids) i (scope_id)
      where t.state in ('waiting', 'queued') and t.stride = 'day' and b.state is distinct from 'paused'
      group by 1
    ), left_out as (
      select x.workspace_id, range_agg(daterange(m.month_start, m.period_end)) as days
      from usage.close m join usage.closed_workspace x using (close_id)
      where x.is_left_out and m.month_start is not null
      group by 1
    ), never_read as (
      select entity_id as workspace_id, '{(,)}'::datemultirange as days from usage.workspace w where ${isNeverRead}
    ), finding as (
      select c.source_id, m.closed_at is null as is_open, f.found_at > m.closed_at as is_since
      from usage.difference f
      join usage.scope c using (scope_id)
      left join usage.close m
        on m.source_id = c.source_id
       and m.month_start = date_trunc('month', (f.period_end - interval '1 microsecond') at time zone 'UTC')::date
      where f.state = 'platform_disagrees'
    ), required as materialized (
      -- Postgres expects few rows, and would compute them for each cell.
      select * from usage.required_workspace
    ), other as materialized (
      select o.source_id, o.meter,
             (o.not_available + o.missing + o.failed + o.unverified) * e.days - coalesce(l.days, '{}') as gaps,
             (o.not_known + o.provisional + o.open + o.platform_disagrees + o.tiers_differ + o.total_differs) * e.days as doubtful,
             coalesce(a.days, '{}') as asked, coalesce(n.days, '{}') as never_read
      from usage.open_days o
      join required e using (workspace_id)
      left join asked a on a.scope_id = o.scope_id
      left join left_out l using (workspace_id)
      left join never_read n using (workspace_id)
      where o.meter <> 'traces'
    ), unclosable as materialized (
      select source_id, range_agg(gaps + doubtful) as days from other group by source_id
    ), known as (
      -- Days outside of every close count as loaded, final and proved.
      select c.source_id, c.failed, e.days - (c.loaded - c.failed - c.unverified) as open, coalesce(a.days, '{}') as asked,
             coalesce(l.days, '{}') as left_out, coalesce(n.days, '{}') as never_read, c.final + e.others as final,
             coalesce(p.compared + p.totalled - p.differing, '{}') + e.others as proved, coalesce(p.differing, '{}') as differing,
             coalesce(p.compared - p.differing, '{}') + e.others as reconciled, coalesce(u.days, '{}') as unclosable
      from usage.trace_cell c
      join (select *, '{(,)}' - days as others from required) e on e.workspace_id = c.workspace_entity_id
      left join asked a on a.scope_id = c.day_scope_id
      left join usage.day_proof p on p.scope_id = c.day_scope_id
      left join left_out l on l.workspace_id = c.workspace_entity_id
      left join never_read n on n.workspace_id = c.workspace_entity_id
      left join unclosable u on u.source_id = c.source_id
    )
    select s.slug as source, s.data_start::text as "dataStart", s.today::text as today,
           ${untilOf("k.final")} as "finalUntil", ${untilOf("k.final * k.proved")} as "provedUntil",
           ${untilOf("k.final * (k.proved + k.differing)")} as "comparedUntil",
           ${untilOf("k.final * k.reconciled - k.unclosable", "greatest(s.data_start, s.closed_until)")} as "reconciledUntil",
           o.days as "gapDays", i.days as "idleDays", i.first::text as "firstIdle", i.last::text as "lastIdle",
           f.days as "failedDays", l.days as "leftOutDays", n.days as "neverReadDays", x.gaps as "otherGaps",
           (select count(*)::integer from finding f where f.source_id = s.source_id and f.is_open) as disagreements,
           (select count(*)::integer from finding f where f.source_id = s.source_id and f.is_since) as "disagreementsSince",
           array(
             select e.external_id from usage.workspace w join usage.entity e using (entity_id)
             where e.source_id = s.source_id and ${isConfigured} order by 1
           ) as "workspaceIds",
           array(select f.fact from usage.source_fact f where f.source_id = s.source_id order by 1) as capabilities,
           ${METER_STARTS} as meters, ${UNKNOWN_METERS} as "unknownMeters",
           s.closed_month::text as "closedMonth", s.months_not_closed as "monthsNotClosed",
           s.next_month::text as "nextMonth", ${lacksPriceIn(sql`s.source_id`, sql`s.next_month`)} as "nextLacksPrice"
    from (
      select s.*, (now() at time zone 'UTC')::date as today, m.closed_month, m.months_not_closed,
             (m.closed_month + interval '1 month')::date as closed_until,
             coalesce(m.closed_month + interval '1 month', date_trunc('month', s.data_start))::date as next_month
      from usage.source s
      cross join lateral (
        select max(month_start) as closed_month,
               greatest(0, extract(year from age(max(month_start), date_trunc('month', s.data_start)::date)) * 12
                 + extract(month from age(max(month_start), date_trunc('month', s.data_start)::date)) + 1
                 - count(*) filter (where month_start >= date_trunc('month', s.data_start)::date))::integer as months_not_closed
        from usage.close where source_id = s.source_id
      ) m
    ) s
    cross join lateral ${countOf("k.open")} o
    cross join lateral ${countOf("k.open - k.asked - k.left_out - k.never_read")} i
    cross join lateral ${countOf("(k.open - k.asked - k.left_out - k.never_read) * k.failed")} f
    cross join lateral ${countOf("(k.open - k.left_out) * k.never_read")} n
    cross join lateral ${countOf("(k.open - k.asked) * k.left_out")} l
    cross join lateral (
      select coalesce(json_agg(json_build_object('meter', g.meter, 'idleDays', i.days, 'firstIdle', i.first, 'lastIdle', i.last,
               'requestedDays', a.days) order by g.meter desc) filter (where i.days + a.days > 0), '[]') as gaps
      from (select distinct meter from other where source_id = s.source_id) g
      cross join lateral ${countOf("k.gaps - k.asked - k.never_read", "(select * from other o where o.meter = g.meter)")} i
      cross join lateral ${countOf("k.gaps * k.asked - k.never_read", "(select * from other o where o.meter = g.meter)")} a
    ) x
    order by s.slug
  `;
}

function untilOf(days: string, from = "s.data_start") {
  return sql<string>`coalesce((
    select least(upper(u.days), s.today)
    from (
      select range_intersect_agg(${sql.raw(days)} + datemultirange(daterange(null, ${sql.raw(from)}))) as days
      from known k where k.source_id = s.source_id
    ) x
    cross join lateral unnest(x.days) u (days)
    where lower_inf(u.days)
  ), s.data_start)::text`;
}

function countOf(days: string, cells = "known") {
  return sql`(
    select coalesce(sum(upper(u.days) - lower(u.days)), 0)::integer as days, min(lower(u.days)) as first,
           max(upper(u.days)) - 1 as last
    from ${sql.raw(cells)} k
    cross join lateral unnest(
      datemultirange(daterange(s.data_start, greatest(s.today, s.data_start))) * (${sql.raw(days)})
    ) u (days)
    where k.source_id = s.source_id
  )`;
}
