import { type RawBuilder, sql } from "kysely";
import { STRIDE_MS } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";
import type { Database } from "../db/database.ts";

/** This long after the end of its calendar month, a day is final in the platform's own books. */
const MONTH_FINAL_AFTER = "4 days";

interface AskedDays {
  readonly sourceId: number;
  /** Epoch milliseconds, whole UTC days, half-open. */
  readonly range: Interval;
}

const EVER = sql<Date>`'-infinity'::timestamptz`;

/**
 * The CTE `judged`: the settled days (UTC) of each scope of a stride.
 *
 * A day is `proven` if whole exports were compared with all of it since `since`. A restatement ends that by itself, of a day and
 * of the hours of a day (`usage.end_proof`); the number of the day's newest one says the same of hours compared meanwhile. A day is
 * `answered` if the rest of it consists of buckets on which the platform contradicts itself: no further request repairs
 * those.
 */
function settledDays(
  { sourceId, range }: AskedDays,
  { stride, since }: { stride: "day" | "hour"; since: RawBuilder<Date> },
) {
  const bucketSeconds = STRIDE_MS[stride] / 1000;
  const [from, to] = [new Date(range.start), new Date(range.end)];
  // A step of 24 hours, because a day of the session's time zone may be longer or shorter.
  return sql`
    day as (
      select c.scope_id, c.group_by, c.workspace_id, start, start + interval '24 hours' as "end"
      from usage.scope c
      cross join generate_series(
        ${from}::timestamptz, ${new Date(range.end - 1)}::timestamptz, interval '24 hours'
      ) start
      where c.source_id = ${sourceId} and c.stride = ${stride} and c.kind = 'traces' and c.trace_tier = 'all'
    ), settled as (
      select day.* from day
      join lateral (
        select sum(extract(epoch from least(v.period_end, day."end") - greatest(v.period_start, day.start))) as seconds
        from usage.coverage v
        where v.scope_id = day.scope_id and v.settled and v.period_start < day."end" and v.period_end > day.start
      ) v on v.seconds = 86400
    ), restated as (
      select c.group_by, c.workspace_id, t.bucket_start as start, max(t.fetch_number) as newest
      from usage.restatement t join usage.series s using (series_id) join usage.scope c using (scope_id)
      where c.source_id = ${sourceId} and c.stride = 'day' and t.bucket_start >= ${from} and t.bucket_start < ${to}
      group by 1, 2, 3
    ), judged as (
      select settled.*, r.seconds = 86400 as proven, r.seconds + d.unmendable * ${bucketSeconds} = 86400 as answered,
             whole.newest is not null as is_restated, d.open > 0 as has_open, d.disagreeing > 0 as has_disagreement
      from settled
      left join restated whole
        on whole.group_by = settled.group_by and whole.workspace_id = settled.workspace_id and whole.start = settled.start
      cross join lateral (select ${since} as at) since
      cross join lateral (
        select coalesce(sum(extract(epoch from least(r.period_end, settled."end") - greatest(r.period_start, settled.start))), 0)
                 as seconds
        from usage.reconciled r
        where r.scope_id = settled.scope_id and r.period_start < settled."end" and r.period_end > settled.start
          and r.reconciled_at >= since.at and r.fetch_number >= coalesce(whole.newest, 0)
      ) r
      cross join lateral (
        select count(*) filter (where d.state = 'open') as open,
               count(*) filter (where d.state = 'platform_disagrees') as disagreeing,
               count(distinct d.bucket_start) filter (
                 where d.state = 'platform_disagrees' and d.fetched_at >= since.at and d.fetch_number >= coalesce(whole.newest, 0)
               ) as unmendable
        from usage.reconciliation_difference d
        where d.scope_id = settled.scope_id and d.state in ('open', 'platform_disagrees')
          and d.bucket_start >= settled.start and d.bucket_start < settled."end"
      ) d
    )`;
}

export interface UnreconciledDay {
  /** UTC midnight, epoch milliseconds. */
  readonly day: number;
  readonly groupBy: GroupBy;
  /** The platform's id. */
  readonly workspaceId: string;
  /** The first that applies: an open difference, a contradiction of the platform, or no comparison with an export. */
  readonly reason: "open" | "platform_disagrees" | "not_reconciled";
}

/**
 * The settled days of each dimension and workspace that are not proven by the platform's export: a difference is left, or
 * there was no comparison since the last restatement. In order of day, dimension and workspace.
 */
export async function unreconciledDays(db: Database, asked: AskedDays): Promise<UnreconciledDay[]> {
  const days = settledDays(asked, { stride: "day", since: EVER });
  const { rows } = await sql<Omit<UnreconciledDay, "day"> & { start: Date }>`
    with ${days}
    select j.start, j.group_by as "groupBy", w.external_id as "workspaceId",
           case when has_open then 'open' when has_disagreement then 'platform_disagrees' else 'not_reconciled' end as reason
    from judged j join usage.entity w on w.entity_id = j.workspace_id
    where not proven or has_open or has_disagreement
    order by j.start, array_position(${[...GROUPINGS]}::text[], j.group_by), w.external_id
  `.execute(db);
  return rows.map(({ start, ...row }) => ({ day: start.getTime(), ...row }));
}

interface ScopeDay {
  readonly scopeId: number;
  /** UTC midnight, epoch milliseconds. */
  readonly day: number;
}

/**
 * The days that the scheduled reconcile must compare: days with an open difference, and days without a comparison since
 * their month became final or since their last restatement. Only completed comparisons are recorded, so missed nights are
 * caught up. Delisted workspaces are skipped: their exports would be empty.
 */
export async function daysDue(db: Database, asked: AskedDays): Promise<ScopeDay[]> {
  const monthFinal = sql<Date>`(date_trunc('month', settled.start at time zone 'UTC') + interval '1 month') at time zone 'UTC'
    + ${MONTH_FINAL_AFTER}::interval`;
  const since = sql<Date>`case when ${monthFinal} <= now() then ${monthFinal} else ${EVER} end`;
  return due(db, asked, { stride: "day", since });
}

/**
 * The same for hours. They are compared once they are settled, and again after a restatement of them or of their day. Hours from
 * before `keptFrom` are due only where their day was restated, or a difference is open.
 */
export async function hoursDue(db: Database, asked: AskedDays & { keptFrom: number }): Promise<ScopeDay[]> {
  return due(db, asked, { stride: "hour", since: EVER, keptFrom: asked.keptFrom });
}

async function due(
  db: Database,
  asked: AskedDays,
  compared: { stride: "day" | "hour"; since: RawBuilder<Date>; keptFrom?: number },
): Promise<ScopeDay[]> {
  const keptFrom = new Date(compared.keptFrom ?? asked.range.start);
  const { rows } = await sql<{ scope_id: number; start: Date }>`
    with ${settledDays(asked, compared)}
    select j.scope_id, j.start
    from judged j join usage.workspace w on w.entity_id = j.workspace_id
    where (has_open or not answered and (is_restated or j.start >= ${keptFrom})) and (w.unlisted_since is null or w.is_deleted)
    order by j.scope_id, j.start
  `.execute(db);
  return rows.map((row) => ({ scopeId: row.scope_id, day: row.start.getTime() }));
}
