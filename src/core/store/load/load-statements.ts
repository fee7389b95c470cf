import { type RawBuilder, sql } from "kysely";
import type { FetchToken } from "../../domain/coverage/finality.ts";
import type { Stride } from "../../domain/time/stride.ts";
import type { Interval, Window } from "../../domain/time/window.ts";
import { METER, type Meter } from "../../domain/usage/meter.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import { lengthOf } from "../catalog/scopes.ts";
import { type ChangedTime, endProof } from "../coverage/proved-time.ts";
import { change, type Database, query, queryOne } from "../db/query.ts";
import { keepMonthsOf } from "./month-totals.ts";

/**
 * Statements of a load into one of the two record tables. Rows of the response are in the session's table `stage`, and their
 * differences from the stored records in its table `change`.
 */

/** The hourly table has hours, by instant. The dated table has other strides, by the UTC day on which a bucket starts. */
export interface RecordTable {
  readonly name: string;
  readonly stage: string;
  readonly bucketType: "timestamptz" | "date";
}

const HOURLY: RecordTable = {
  name: "usage.hourly_record",
  stage: "pg_temp.usage_stage_hourly",
  bucketType: "timestamptz",
};
const DATED: RecordTable = {
  name: "usage.dated_record",
  stage: "pg_temp.usage_stage_dated",
  bucketType: "date",
};

export function recordTable(stride: Stride): RecordTable {
  return stride === "hour" ? HOURLY : DATED;
}

function changeOf({ bucketType }: RecordTable): RawBuilder<unknown> {
  return bucketType === "date" ? sql`pg_temp.usage_change_dated` : sql`pg_temp.usage_change_hourly`;
}

function startOf({ bucketType }: RecordTable): RawBuilder<unknown> {
  return bucketType === "date" ? sql`c.bucket_start::timestamp at time zone 'UTC'` : sql`c.bucket_start`;
}

interface Part {
  readonly scopeIds: readonly number[];
  readonly period: Interval;
}

export function storedIn({ name, bucketType }: RecordTable, { scopeIds, period }: Part): RawBuilder<unknown> {
  const at = (instant: number) =>
    bucketType === "date"
      ? sql`(${new Date(instant)}::timestamptz at time zone 'UTC')::date`
      : sql`${new Date(instant)}::timestamptz`;
  return sql`
    select r.series_id, r.bucket_start, r.traces, s.scope_id
    from usage.series s join ${sql.table(name)} r on r.series_id = s.series_id
    where s.scope_id = any (${scopeIds}::integer[]) and r.bucket_start >= ${at(period.start)} and r.bucket_start < ${at(period.end)}`;
}

/** Stage tables last for the session and are emptied at commit: new tables for each load would bloat the system catalogue. */
export async function createStage(db: Database, table: RecordTable): Promise<void> {
  const bucketType = sql.raw(table.bucketType);
  const suffix = sql.raw(table.bucketType === "date" ? "dated" : "hourly");
  await sql`
    create temporary table if not exists usage_stage_${suffix}
      (series_id integer, bucket_start ${bucketType}, traces bigint) on commit delete rows;
    create temporary table if not exists usage_change_${suffix}
      (series_id integer, bucket_start ${bucketType}, scope_id integer, old_traces bigint, new_traces bigint)
      on commit delete rows
  `.execute(db);
}

export async function stageChanges(db: Database, table: RecordTable, part: Part): Promise<number> {
  return change(db)`
    insert into ${changeOf(table)} (series_id, bucket_start, scope_id, old_traces, new_traces)
    select series_id, bucket_start, r.scope_id, r.traces, n.traces
    from ${sql.table(table.stage)} n full join (${storedIn(table, part)}) r using (series_id, bucket_start)
    where n.traces is distinct from r.traces
  `;
}

export interface Changes {
  readonly inserted: number;
  readonly updated: number;
  readonly retired: number;
  /**
   * Scopes whose non-zero rows in the window would all be retired. With `zerosDelete`, rows that become zero count as retired,
   * because the server may no longer count the usage.
   */
  readonly fullyDeleted: readonly number[];
}

export async function countChanges(
  db: Database,
  table: RecordTable,
  { zerosDelete, ...part }: Part & { readonly zerosDelete: boolean },
): Promise<Changes> {
  const change = changeOf(table);
  return queryOne<Changes>(db)`
    with retired as (
      select distinct scope_id from ${change}
      where (new_traces is null or ${zerosDelete}::boolean and new_traces = 0) and old_traces > 0
    )
    select count(*) filter (where old_traces is null) as inserted,
           count(*) filter (where old_traces is not null and new_traces is not null) as updated,
           count(*) filter (where new_traces is null) as retired,
           array(
             select scope_id from retired
             where not exists (
               select from (${storedIn(table, part)}) kept
               where kept.scope_id = retired.scope_id and kept.traces > 0 and not exists (
                 select from ${change} c
                 where c.series_id = kept.series_id and c.bucket_start = kept.bucket_start
                   and (c.new_traces is null or ${zerosDelete}::boolean and c.new_traces = 0)
               )
             )
             order by scope_id
           ) as "fullyDeleted"
    from ${change}
  `;
}

/**
 * Stores changes of final counts, and ends the proof of their time. Runs before coverage is replaced, because only the old
 * coverage shows what was final. Returns the number of changes.
 */
export async function keepRestatements(
  db: Database,
  table: RecordTable,
  fetchToken: FetchToken,
): Promise<number> {
  return keepRestated(
    db,
    fetchToken,
    sql`
    select c.series_id, ${startOf(table)}, c.old_traces, c.new_traces
    from ${changeOf(table)} c
    join usage.series s on s.series_id = c.series_id
    join usage.coverage v on v.scope_id = s.scope_id and v.final
      and ${startOf(table)} >= v.period_start and ${startOf(table)} < v.period_end
    where coalesce(c.old_traces, 0) <> coalesce(c.new_traces, 0)
  `,
  );
}

/** Stores changes of invalidated final zeros, which have no coverage but had been shown as final. */
export async function keepInvalidated(
  db: Database,
  table: RecordTable,
  fetchToken: FetchToken,
): Promise<number> {
  return keepRestated(
    db,
    fetchToken,
    sql`
    select c.series_id, ${startOf(table)}, null::bigint, c.new_traces
    from ${changeOf(table)} c
    join usage.series s on s.series_id = c.series_id
    where c.new_traces > 0
      and exists (
        select from usage.withdrawal w
        where w.scope_id = s.scope_id and w.final
          and ${startOf(table)} >= w.period_start and ${startOf(table)} < w.period_end
      )
      and not exists (
        select from usage.coverage v
        where v.scope_id = s.scope_id and ${startOf(table)} >= v.period_start and ${startOf(table)} < v.period_end
      )
  `,
  );
}

async function keepRestated(
  db: Database,
  { fetchNumber }: FetchToken,
  restated: RawBuilder<unknown>,
): Promise<number> {
  const rows = await query<ChangedTime & { readonly restated: number }>(db)`
    with restated as (
      insert into usage.restatement (series_id, bucket_start, old_traces, new_traces, fetch_number, restated_at)
      select r.*, ${fetchNumber}, (select usage.load_instant())
      from (${restated}) r (series_id, bucket_start, old_traces, new_traces)
      order by r.series_id, r.bucket_start
      returning series_id, bucket_start
    )
    select c.scope_id as "scopeId", count(*)::integer as restated,
           range_agg(tstzrange(r.bucket_start, r.bucket_start + ${lengthOf(sql`c.stride`)}))::text as parts
    from restated r join usage.series using (series_id) join usage.scope c using (scope_id)
    group by c.scope_id
  `;
  await endProof(db, rows, { restatedBy: fetchNumber });
  return rows.reduce((sum, row) => sum + row.restated, 0);
}

export async function mergeChanges(db: Database, table: RecordTable): Promise<void> {
  const change = changeOf(table);
  const months = table.bucketType === "date" ? sql`; ${keepMonthsOf(change)}` : sql``;
  await sql`
    merge into ${sql.table(table.name)} r using ${change} c on r.series_id = c.series_id and r.bucket_start = c.bucket_start
    when matched and c.new_traces is null then delete
    when matched then update set traces = c.new_traces
    when not matched then insert (series_id, bucket_start, traces) values (c.series_id, c.bucket_start, c.new_traces)
    ${months}
  `.execute(db);
}

const AGE_CLASSES_HOURS: readonly number[] = [
  ...[1, 2, 3, 6, 12, 24, 36, 48, 72, 96, 120, 144, 168, 240, 336, 504, 744, 1488, 2232, 8784, 876_000],
];

export interface LateChange {
  readonly was_final: boolean;
  readonly age_hours: number;
  readonly changes: number;
  readonly traces_moved: number;
}

/** A change is late if the earlier response came after the bucket's end. Weeks and longer buckets do not measure lateness. */
export async function findLateChanges(
  db: Database,
  table: RecordTable,
  { fetchedAt }: FetchToken,
): Promise<LateChange[]> {
  const classes = sql`${AGE_CLASSES_HOURS}`;
  return query<LateChange>(db)`
    select v.final as was_final,
           (${classes}::integer[])[1 + width_bucket(
             extract(epoch from ${new Date(fetchedAt)}::timestamptz - b.bucket_end) / 3600, ${classes}::numeric[])] as age_hours,
           count(*) as changes, sum(abs(coalesce(c.new_traces, 0) - coalesce(c.old_traces, 0)))::bigint as traces_moved
    from ${changeOf(table)} c
    join usage.series s on s.series_id = c.series_id
    join usage.scope p on p.scope_id = s.scope_id and p.kind = 'traces' and p.stride in ('hour', 'day')
    join usage.coverage v on v.scope_id = s.scope_id
      and ${startOf(table)} >= v.period_start and ${startOf(table)} < v.period_end
    cross join lateral (
      select ${startOf(table)} + case p.stride when 'hour' then interval '1 hour' else interval '1 day' end as bucket_end
    ) b
    where coalesce(c.old_traces, 0) <> coalesce(c.new_traces, 0) and v.fetched_at >= b.bucket_end
    group by 1, 2
    order by 1, 2
  `;
}

export interface RequestedWindow {
  readonly sourceId: number;
  readonly meter: Meter;
  readonly groupBy: GroupBy;
  readonly window: Window;
  readonly fetchToken: FetchToken;
}

/** Adds in key order, so that concurrent loads never deadlock. */
export async function countLateChanges(
  db: Database,
  { sourceId, meter, groupBy, window, fetchToken }: RequestedWindow,
  late: readonly LateChange[],
): Promise<void> {
  if (late.length === 0) return;
  await sql`
    insert into usage.late_change as l
      (source_id, observed_on, trace_tier, group_by, stride, was_final, age_hours, changes, traces_moved)
    select ${sourceId}, (${new Date(fetchToken.fetchedAt)}::timestamptz at time zone 'UTC')::date, ${METER[meter].tier}, ${groupBy},
           ${window.stride}, n.*
    from json_to_recordset(${JSON.stringify(late)}::json)
      n (was_final boolean, age_hours integer, changes bigint, traces_moved bigint)
    order by n.was_final, n.age_hours
    on conflict (source_id, trace_tier, group_by, stride, observed_on, was_final, age_hours) do update
    set changes = l.changes + excluded.changes, traces_moved = l.traces_moved + excluded.traces_moved
  `.execute(db);
}
