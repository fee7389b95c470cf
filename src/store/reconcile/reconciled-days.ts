import { type RawBuilder, sql } from "kysely";
import { STRIDE_MS } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import type { Database } from "../db/database.ts";

/** Days of four days after the end of its calendar month are final as far as the platform's own books go. */
const MONTH_FINAL_AFTER = "4 days";

interface AskedDays {
  readonly sourceId: number;
  /** Epoch milliseconds, whole UTC days, half-open. */
  readonly range: Interval;
}

/**
 * Settled days (UTC) of each scope of a stride. `held`: a whole export was held against all of the day since `since`, and nothing
 * was restated after in the part that it was held against; `answered`: the same, where a bucket on which the platform's two answers
 * differ counts too, since asking again would not mend it. Hours are undone by a restatement of their day as well.
 */
function settledDays(
  { sourceId, range }: AskedDays,
  { stride, since }: { stride: "day" | "hour"; since: RawBuilder<Date> },
) {
  const bucketSeconds = STRIDE_MS[stride] / 1000;
  const [from, to] = [new Date(range.start), new Date(range.end)];
  // Days of 24 hours, whatever the session's time zone makes of a day.
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
      select c.stride, c.group_by, c.workspace_id, date_bin('24 hours', t.bucket_start, 'epoch'::timestamptz) as start,
             max(t.fetch_number) as newest, array_agg(t.bucket_start) as buckets, array_agg(t.fetch_number) as numbers
      from usage.restatement t join usage.series s using (series_id) join usage.scope c using (scope_id)
      where c.source_id = ${sourceId} and c.stride = any (${["day", stride]}::text[])
        and t.bucket_start >= ${from} and t.bucket_start < ${to}
      group by 1, 2, 3, 4
    ), judged as (
      select settled.*, r.seconds = 86400 as held, r.seconds + d.unmendable * ${bucketSeconds} = 86400 as answered,
             d.open > 0 as has_open, d.disagreeing > 0 as has_disagreement
      from settled
      left join restated own
        on own.group_by = settled.group_by and own.workspace_id = settled.workspace_id and own.start = settled.start
       and own.stride = ${stride}
      left join restated whole
        on whole.group_by = settled.group_by and whole.workspace_id = settled.workspace_id and whole.start = settled.start
       and whole.stride = 'day'
      cross join lateral (select ${since} as at) since
      cross join lateral (
        select coalesce(sum(extract(epoch from least(r.period_end, settled."end") - greatest(r.period_start, settled.start))), 0)
                 as seconds
        from usage.reconciled r
        where r.scope_id = settled.scope_id and r.period_start < settled."end" and r.period_end > settled.start
          and r.reconciled_at >= since.at and r.fetch_number >= coalesce(whole.newest, 0)
          and not exists (
            select from unnest(own.buckets, own.numbers) b (bucket_start, fetch_number)
            where b.bucket_start >= r.period_start and b.bucket_start < r.period_end and b.fetch_number > r.fetch_number
          )
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
  /** The first that applies: a difference to be repaired, one that no request mends, or not held against an export lately. */
  readonly reason: "open" | "platform_disagrees" | "not_reconciled";
}

/**
 * Settled days, by grouping and workspace, that are not proved against the platform's export: with a difference left, or not
 * held against it since they were last restated. In order of day, grouping and workspace.
 */
export async function unreconciledDays(db: Database, asked: AskedDays): Promise<UnreconciledDay[]> {
  const days = settledDays(asked, {
    stride: "day",
    since: sql<Date>`'-infinity'::timestamptz`,
  });
  const { rows } = await sql<Omit<UnreconciledDay, "day"> & { start: Date }>`
    with ${days}
    select j.start, j.group_by as "groupBy", w.external_id as "workspaceId",
           case when has_open then 'open' when has_disagreement then 'platform_disagrees' else 'not_reconciled' end as reason
    from judged j join usage.entity w on w.entity_id = j.workspace_id
    where not held or has_open or has_disagreement
    order by j.start, array_position(array['workspace', 'project', 'user', 'api_key'], j.group_by), w.external_id
  `.execute(db);
  return rows.map(({ start, ...row }) => ({ day: start.getTime(), ...row }));
}

interface ScopeDay {
  readonly scopeId: number;
  /** UTC midnight, epoch milliseconds. */
  readonly day: number;
}

/**
 * Days that the scheduled pass owes: those with an open difference, and those not held against an export since four days after
 * their calendar month, or since they were restated. A missed night is made up for, since only what was done is kept. Workspaces
 * that a listing no longer names are left out: their exports would say nothing.
 */
export async function daysDue(db: Database, asked: AskedDays): Promise<ScopeDay[]> {
  const monthFinal = sql<Date>`(date_trunc('month', settled.start at time zone 'UTC') + interval '1 month') at time zone 'UTC'
    + ${MONTH_FINAL_AFTER}::interval`;
  const days = settledDays(asked, {
    stride: "day",
    since: sql<Date>`case when ${monthFinal} <= now() then ${monthFinal} else '-infinity'::timestamptz end`,
  });
  return due(db, days);
}

/**
 * The same for hours, which are held against an export once, when they are settled, and again where they or their day were
 * restated since.
 */
export async function hoursDue(db: Database, asked: AskedDays): Promise<ScopeDay[]> {
  const days = settledDays(asked, {
    stride: "hour",
    since: sql<Date>`'-infinity'::timestamptz`,
  });
  return due(db, days);
}

async function due(db: Database, days: RawBuilder<unknown>): Promise<ScopeDay[]> {
  const { rows } = await sql<{ scope_id: number; start: Date }>`
    with ${days}
    select j.scope_id, j.start
    from judged j join usage.workspace w on w.entity_id = j.workspace_id
    where (has_open or not answered) and (w.unlisted_since is null or w.is_deleted)
    order by j.scope_id, j.start
  `.execute(db);
  return rows.map((row) => ({ scopeId: row.scope_id, day: row.start.getTime() }));
}
