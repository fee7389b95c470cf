import { sql } from "kysely";
import type { Stride } from "../../domain/time/stride.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import type { Database, Store } from "../db/database.ts";
import { inBatches } from "../retention/prune.ts";

/** What is kept of the past: when days settled, how late counts still changed, and how far back both are whole. */

/** Upper ends of the classes of ages, in hours. The last one takes whatever is older. */
export const AGE_CLASSES_HOURS: readonly number[] = [
  ...[1, 2, 3, 6, 12, 24, 36, 48, 72, 96, 120, 144, 168, 240, 336, 504, 744, 1488, 2232, 8784, 876_000],
];

/** Changes of one class of ages, by whether their bucket was settled. */
export interface LateChange {
  readonly was_settled: boolean;
  readonly age_hours: number;
  readonly changes: number;
  readonly traces_moved: number;
}

/** Adds to the distribution over ages, in key order: loads that do so at once wait for one another, never in a ring. */
export async function countLateChanges(
  db: Database,
  where: { sourceId: number; groupBy: GroupBy; stride: Stride; observedAt: number },
  late: readonly LateChange[],
): Promise<void> {
  if (late.length === 0) return;
  await sql`
    insert into usage.late_change as l
      (source_id, observed_on, group_by, stride, was_settled, age_hours, changes, traces_moved)
    select ${where.sourceId}, (${new Date(where.observedAt)}::timestamptz at time zone 'UTC')::date, ${where.groupBy},
           ${where.stride}, n.*
    from unnest(
      ${late.map((one) => one.was_settled)}::boolean[], ${late.map((one) => one.age_hours)}::integer[],
      ${late.map((one) => one.changes)}::bigint[], ${late.map((one) => one.traces_moved)}::bigint[]
    ) n (was_settled, age_hours, changes, traces_moved)
    order by n.was_settled, n.age_hours
    on conflict (source_id, observed_on, group_by, stride, was_settled, age_hours) do update
    set changes = l.changes + excluded.changes, traces_moved = l.traces_moved + excluded.traces_moved
  `.execute(db);
}

/** Notes for settled time of day scopes that it is settled since `at`, where nothing says so yet. */
export async function noteSettlement(
  db: Database,
  { scopeIds, at }: { scopeIds: readonly number[]; at: string },
): Promise<number> {
  const { numAffectedRows } = await sql`
    insert into usage.settlement (scope_id, period_start, period_end, settled_at)
    select c.scope_id, lower(part), upper(part), ${at}::timestamptz
    from (
      select scope_id, range_agg(tstzrange(period_start, period_end)) as settled
      from usage.coverage
      where settled and scope_id = any (${[...scopeIds]}::integer[])
      group by scope_id
    ) c
    cross join lateral unnest(c.settled - coalesce((
      select range_agg(tstzrange(s.period_start, s.period_end)) from usage.settlement s where s.scope_id = c.scope_id
    ), '{}')) part
    order by 1, 2
  `.execute(db);
  return Number(numAffectedRows ?? 0);
}

/**
 * Lets go of history older than so many days, and says first from when on it is whole: nothing may answer for an instant
 * before that. Settlements that old are all in force at any instant that may still be asked for, so they are joined.
 */
export async function pruneHistory(
  store: Store,
  { sourceId, keepDays }: { sourceId: number; keepDays: number },
): Promise<{ restatements: number; settlements: number; lateChanges: number }> {
  const { rows: cuts } = await sql<{ cut: string }>`
    update usage.source s
    set history_since = greatest(history_since, now() - make_interval(days => ${keepDays}))
    where source_id = ${sourceId} and s.created_at < now() - make_interval(days => ${keepDays})
    returning history_since::text as cut
  `.execute(store.db);
  const cut = cuts[0]?.cut;
  if (cut === undefined) return { restatements: 0, settlements: 0, lateChanges: 0 };
  const restatements = await inBatches(async (limit) => {
    const { numAffectedRows } = await sql`
      delete from usage.restatement
      where restatement_id in (
        select r.restatement_id
        from usage.restatement r join usage.series x using (series_id) join usage.scope p using (scope_id)
        where p.source_id = ${sourceId} and r.restated_at < ${cut}::timestamptz limit ${limit}
      )
    `.execute(store.db);
    return Number(numAffectedRows ?? 0);
  });
  const { rows: joined } = await sql<{ fewer: number }>`
    with old as (
      delete from usage.settlement t using usage.scope p
      where p.scope_id = t.scope_id and p.source_id = ${sourceId} and t.settled_at < ${cut}::timestamptz
      returning t.*
    ), joined as (
      insert into usage.settlement (scope_id, period_start, period_end, settled_at)
      select scope_id, lower(part), upper(part), settled_at
      from (
        select scope_id, max(settled_at) as settled_at, range_agg(tstzrange(period_start, period_end)) as parts
        from old group by scope_id
      ) o
      cross join lateral unnest(parts) part
      returning 1
    )
    select (select count(*) from old) - (select count(*) from joined) as fewer
  `.execute(store.db);
  const late = await sql`
    delete from usage.late_change where source_id = ${sourceId} and observed_on < (${cut}::timestamptz at time zone 'UTC')::date
  `.execute(store.db);
  return {
    restatements,
    settlements: joined[0]?.fewer ?? 0,
    lateChanges: Number(late.numAffectedRows ?? 0),
  };
}

/** Notes as settled from now on what a release from before this history has settled without a note. */
export async function healSettlement(db: Database, sourceId: number): Promise<number> {
  const { rows } = await sql<{ scope_id: number; at: string }>`
    select scope_id, clock_timestamp()::text as at from usage.scope where source_id = ${sourceId} and stride = 'day'
  `.execute(db);
  const at = rows[0]?.at;
  return at === undefined ? 0 : noteSettlement(db, { scopeIds: rows.map((row) => row.scope_id), at });
}
