import { type RawBuilder, sql } from "kysely";
import { STRIDE_MS } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { METER, type Meter } from "../../domain/usage/meter.ts";
import { type Database, query, type Row } from "../db/query.ts";

/** A day is final in the platform's own books this long after the end of its calendar month. */
const MONTH_FINAL_AFTER = "4 days";

interface RequestedDays {
  readonly sourceId: number;
  readonly meter?: Meter | undefined;
  /** Epoch ms, whole UTC days, half-open. */
  readonly range: Interval;
}

interface ScopeDay {
  readonly scopeId: number;
  readonly day: number;
}

/**
 * Returns the days that the scheduled reconcile must compare: days with an open difference, and days without a comparison since
 * their month became final or since their last restatement. Only completed comparisons are recorded, so missed nights are
 * caught up. Delisted workspaces are skipped: their exports would be empty.
 */
export async function daysDue(db: Database, requested: RequestedDays): Promise<ScopeDay[]> {
  const monthFinal = sql<Date>`(date_trunc('month', final_day.start at time zone 'UTC') + interval '1 month') at time zone 'UTC'
    + ${MONTH_FINAL_AFTER}::interval`;
  const since = sql<Date>`case when ${monthFinal} <= now() then ${monthFinal} else ${EVER} end`;
  return due(db, requested, { stride: "day", since, keptFrom: requested.range.start });
}

/**
 * Hours are compared once they are final, and again after a restatement of these hours or their day. Hours before `keptFrom`
 * are due only if their day was restated, or a difference is open.
 */
export async function hoursDue(
  db: Database,
  requested: RequestedDays & { keptFrom: number },
): Promise<ScopeDay[]> {
  return due(db, requested, { stride: "hour", since: EVER, keptFrom: requested.keptFrom });
}

const EVER = sql<Date>`'-infinity'::timestamptz`;

/**
 * Returns final days that were not compared with whole exports since `since`, which may depend on the day `final_day.start`. A
 * restatement ends a comparison of a day and of its hours (`endProof`). The number of the day's newest restatement also ends
 * later comparisons of hours with older exports. Contradictions of the platform count as compared, because no request repairs
 * them.
 */
async function due(
  db: Database,
  { sourceId, meter = "traces", range }: RequestedDays,
  { stride, since, keptFrom }: { stride: "day" | "hour"; since: RawBuilder<Date>; keptFrom: number },
): Promise<ScopeDay[]> {
  const ofMeter = sql`source_id = ${sourceId} and kind = ${METER[meter].kind} and trace_tier = ${METER[meter].tier}`;
  const bucketSeconds = STRIDE_MS[stride] / 1000;
  const [from, to] = [sql`${new Date(range.start)}::timestamptz`, sql`${new Date(range.end)}::timestamptz`];
  // A step has 24 hours, because a day of the session's time zone may be longer or shorter. The range is read once and joined
  // by scope: a search per day and scope takes seconds with a hundred workspaces.
  const rows = await query<Row<"usage.scope", "scopeId"> & { start: Date }>(db)`
    with own as (
      select scope_id, group_by, workspace_id from usage.scope where ${ofMeter} and stride = ${stride}
    ), final as (
      select v.scope_id, range_agg(tstzrange(v.period_start, v.period_end)) as parts
      from usage.coverage v join own using (scope_id)
      where v.final and v.period_start < ${to} and v.period_end > ${from}
      group by v.scope_id
    ), near as materialized (
      select r.* from usage.reconciled r join own using (scope_id) where r.period_start < ${to} and r.period_end > ${from}
    ), left_over as materialized (
      select d.* from usage.difference d join own using (scope_id)
      where d.compared_with = 'export' and d.state in ('open', 'platform_disagrees')
        and d.period_start >= ${from} and d.period_start < ${to}
    ), restated as materialized (
      select c.group_by, c.workspace_id, t.bucket_start as start, max(t.fetch_number) as newest
      from usage.restatement t join usage.series s using (series_id) join usage.scope c using (scope_id)
      where ${ofMeter} and c.stride = 'day' and t.bucket_start >= ${from} and t.bucket_start < ${to}
      group by 1, 2, 3
    ), final_day as (
      select distinct own.*, day.start, day.start + interval '24 hours' as "end"
      from own join final f using (scope_id)
      cross join lateral unnest(f.parts * tstzmultirange(tstzrange(${from}, ${to}))) part
      cross join lateral generate_series(
        date_trunc('day', lower(part), 'UTC'), upper(part) - interval '1 microsecond', interval '24 hours'
      ) day (start)
      where f.parts @> tstzrange(day.start, day.start + interval '24 hours') and day.start >= ${from}
    ), asked as materialized (
      select final_day.*, whole.newest, ${since} as since
      from final_day
      left join restated whole
        on whole.group_by = final_day.group_by and whole.workspace_id = final_day.workspace_id and whole.start = final_day.start
    ), compared as (
      select a.scope_id, a.start,
             sum(extract(epoch from least(r.period_end, a."end") - greatest(r.period_start, a.start))) as seconds
      from asked a
      join near r on r.scope_id = a.scope_id and r.period_start < a."end" and r.period_end > a.start
       and r.reconciled_at >= a.since and r.fetch_number >= coalesce(a.newest, 0)
      group by a.scope_id, a.start
    ), differing as (
      select a.scope_id, a.start, count(*) filter (where d.state = 'open') as open,
             count(distinct d.period_start) filter (
               where d.state = 'platform_disagrees' and d.fetched_at >= a.since and d.fetch_number >= coalesce(a.newest, 0)
             ) as unmendable
      from asked a
      join left_over d on d.scope_id = a.scope_id and d.period_start >= a.start and d.period_start < a."end"
      group by a.scope_id, a.start
    )
    select a.scope_id as "scopeId", a.start
    from asked a
    join usage.workspace w on w.entity_id = a.workspace_id and (w.unlisted_since is null or w.is_deleted)
    left join compared r on r.scope_id = a.scope_id and r.start = a.start
    left join differing d on d.scope_id = a.scope_id and d.start = a.start
    where coalesce(d.open, 0) > 0
      or (a.newest is not null or a.start >= ${new Date(keptFrom)})
      and coalesce(r.seconds, 0) + coalesce(d.unmendable, 0) * ${bucketSeconds} <> 86400
    order by a.scope_id, a.start
  `;
  return rows.map(({ scopeId, start }) => ({ scopeId, day: start.getTime() }));
}
