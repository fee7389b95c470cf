import { sql } from "kysely";
import type { Interval } from "../../domain/time/window.ts";
import { clearTime } from "../catalog/scope-time.ts";
import { lockScopes } from "../catalog/scopes.ts";
import { cutHistory } from "../catalog/sources.ts";
import { clearProof } from "../coverage/proved-time.ts";
import type { Store } from "../db/database.ts";
import { change, type Database, query, queryValues, type Row } from "../db/query.ts";

interface Kept {
  readonly sourceId: number;
  readonly keepDays: number;
}

export async function pruneFetches(db: Database, { sourceId, keepDays }: Kept): Promise<number> {
  return inBatches(
    (limit) => change(db)`
      delete from usage.fetch
      where fetch_number in (
        select fetch_number from usage.fetch
        where source_id = ${sourceId} and fetched_at < now() - make_interval(days => ${keepDays}) limit ${limit}
      )`,
  );
}

export async function pruneTasks(db: Database, { sourceId, keepDays }: Kept): Promise<number> {
  return inBatches(
    (limit) => change(db)`
      delete from usage.fetch_task
      where task_id in (
        select s.task_id from usage.fetch_task s join usage.backfill b using (backfill_id)
        where s.source_id = ${sourceId} and b.finished_at < now() - make_interval(days => ${keepDays}) limit ${limit}
      )`,
  );
}

/** `keepDigests` keeps names that are digests already. */
export async function forgetUserNames(
  db: Database,
  { sourceId, keepDigests }: { sourceId: number; keepDigests: boolean },
): Promise<number> {
  return change(db)`
    delete from usage.entity_name n using usage.entity e
    where e.entity_id = n.entity_id and e.source_id = ${sourceId} and e.dimension = 'user'
      and not (${keepDigests} and n.name like 'sha256:%')
  `;
}

/** Rows of one statement: a long delete would hold up vacuum and replicas. */
const BATCH = 10_000;

async function inBatches(remove: (limit: number) => Promise<number>): Promise<number> {
  let removed = 0;
  for (;;) {
    const rows = await remove(BATCH);
    removed += rows;
    if (rows < BATCH) return removed;
  }
}

/**
 * Moves `history_since` first, so that no query reads an instant with incomplete history. Older entries of `became_final` apply
 * to every remaining instant, so they are merged. Returns the number of deleted restatements.
 */
export async function pruneHistory(store: Store, { sourceId, keepDays }: Kept): Promise<number> {
  const cut = await cutHistory(store.db, { sourceId, keepDays });
  if (cut === undefined) return 0;
  const restatements = await inBatches(
    (limit) => change(store.db)`
      delete from usage.restatement
      where restatement_id in (
        select r.restatement_id
        from usage.restatement r join usage.series x using (series_id) join usage.scope p using (scope_id)
        where p.source_id = ${sourceId} and r.restated_at < ${cut}::timestamptz limit ${limit}
      )`,
  );
  await change(store.db)`
    with old as (
      delete from usage.became_final t using usage.scope p
      where p.scope_id = t.scope_id and p.source_id = ${sourceId} and t.final_at < ${cut}::timestamptz
      returning t.*
    )
    insert into usage.became_final (scope_id, period_start, period_end, final_at)
    select scope_id, lower(part), upper(part), final_at
    from (
      select scope_id, max(final_at) as final_at, range_agg(tstzrange(period_start, period_end)) as parts
      from old group by scope_id
    ) o
    cross join lateral unnest(parts) part
  `;
  await change(store.db)`
    delete from usage.withdrawal w using usage.scope p
    where p.scope_id = w.scope_id and p.source_id = ${sourceId} and w.invalidated_at < ${cut}::timestamptz
  `;
  const before = sql<string>`(${cut}::timestamptz at time zone 'UTC')::date`;
  const changes = store.db.deleteFrom("usage.late_change").where("source_id", "=", sourceId);
  await changes.where("observed_on", "<", before).execute();
  return restatements;
}

/** Approximate records of one transaction: a long one would hold up loads of its scope, vacuum and replicas. */
const HOURS_AT_ONCE = 50_000;
const MOST_DAYS = 366;
/** No response takes this long to arrive. Until then coverage must stay, so that older responses are discarded. */
const FETCHED_DAYS_AGO = 7;

/**
 * Removes the hours of old days with their coverage, one part of a scope at a time. Hours of a day that is not loaded stay,
 * because they replace the day. Returns the number of records.
 */
export async function dropOldHours(
  store: Store,
  { sourceId, keepHours }: { sourceId: number; keepHours: number },
): Promise<number> {
  const scopeIds = await queryValues<Row<"usage.scope">["scopeId"]>(store.db)`
    select scope_id from usage.trace_scope s
    where s.source_id = ${sourceId} and s.stride = 'hour' and exists (
      select from usage.coverage c where c.scope_id = s.scope_id and c.period_start < ${keptFrom(keepHours)}
    )
    order by scope_id
  `;
  let removed = 0;
  for (const scopeId of scopeIds) {
    for (let days = 1; ; ) {
      const records = await dropPart(store, { scopeId, keepHours, days });
      if (records === undefined) break;
      removed += records;
      days = nextLength(days, records);
    }
  }
  return removed;
}

function nextLength(days: number, records: number): number {
  if (records > HOURS_AT_ONCE) return Math.max(1, Math.floor(days / 2));
  return records * 2 <= HOURS_AT_ONCE ? Math.min(MOST_DAYS, days * 2) : days;
}

function keptFrom(keepHours: number) {
  return sql<Date>`date_trunc('day', now() - make_interval(hours => ${keepHours}), 'UTC')`;
}

async function dropPart(
  store: Store,
  { scopeId, keepHours, days }: { scopeId: number; keepHours: number; days: number },
): Promise<number | undefined> {
  return store.transaction(async ({ db }) => {
    await lockScopes(db, [scopeId]);
    const part = await oldestPart(db, { scopeId, keepHours, days });
    if (part === undefined) return undefined;
    const removed = await change(db)`
      delete from usage.hourly_record r using usage.series s
      where s.scope_id = ${scopeId} and r.series_id = s.series_id
        and r.bucket_start >= ${new Date(part.start)} and r.bucket_start < ${new Date(part.end)}
    `;
    await clearTime(db, "coverage", { scopeIds: [scopeId], period: part });
    // Hours that are loaded again later are not proved.
    await clearProof(db, { scopeIds: [scopeId], period: part });
    return removed;
  });
}

async function oldestPart(
  db: Database,
  { scopeId, keepHours, days }: { scopeId: number; keepHours: number; days: number },
): Promise<Interval | undefined> {
  // A day of the session's time zone may have 23 hours.
  const rows = await query<{ from: Date; to: Date }>(db)`
    select lower(part) as "from", least(upper(part), lower(part) + make_interval(hours => ${days * 24})) as "to"
    from (
      select range_agg(tstzrange(h.period_start, h.period_end))
             * tstzmultirange(tstzrange(null, ${keptFrom(keepHours)}))
             * (
               select range_agg(tstzrange(d.period_start, d.period_end))
               from usage.trace_scope s
               join usage.trace_scope p using (source_id, group_by, workspace_id)
               join usage.coverage d on d.scope_id = p.scope_id
               where s.scope_id = ${scopeId} and p.stride = 'day'
             ) as parts
      from usage.coverage h
      where h.scope_id = ${scopeId} and h.fetched_at < now() - make_interval(days => ${FETCHED_DAYS_AGO})
    ) old
    cross join lateral unnest(parts) part
    order by lower(part)
    limit 1
  `;
  return rows[0] && { start: rows[0].from.getTime(), end: rows[0].to.getTime() };
}
