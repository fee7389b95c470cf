import { type QueryResult, type RawBuilder, sql } from "kysely";
import type { Database } from "../db/database.ts";

interface Kept {
  readonly sourceId: number;
  readonly keepDays: number;
}

/** Removes old requests from the ledger. Coverage keeps its own fetch numbers. Returns how many were removed. */
export async function pruneFetches(db: Database, { sourceId, keepDays }: Kept): Promise<number> {
  return inBatches(
    db,
    (limit) => sql`
      delete from usage.fetch
      where fetch_number in (
        select fetch_number from usage.fetch
        where source_id = ${sourceId} and fetched_at < now() - make_interval(days => ${keepDays}) limit ${limit}
      )`,
  );
}

/** Removes the tasks of backfills that finished long ago. The backfill's own row stays. */
export async function pruneTasks(db: Database, { sourceId, keepDays }: Kept): Promise<number> {
  return inBatches(
    db,
    (limit) => sql`
      delete from usage.fetch_task
      where task_id in (
        select s.task_id from usage.fetch_task s join usage.backfill b using (backfill_id)
        where s.source_id = ${sourceId} and b.finished_at < now() - make_interval(days => ${keepDays}) limit ${limit}
      )`,
  );
}

/** Removes stored names of users. `keepDigests` keeps those that are digests already. */
export async function forgetUserNames(
  db: Database,
  { sourceId, keepDigests }: { sourceId: number; keepDigests: boolean },
): Promise<number> {
  const removed = await sql`
    delete from usage.entity_name n using usage.entity e
    where e.entity_id = n.entity_id and e.source_id = ${sourceId} and e.dimension = 'user'
      and not (${keepDigests} and n.name like 'sha256:%')
  `.execute(db);
  return affected(removed);
}

/** Rows that one statement removes at most: a long delete would hold up vacuum and replicas. */
const BATCH = 10_000;

/** Repeats a limited delete until it removes fewer rows than the limit. Returns how many rows were removed. */
export async function inBatches(
  db: Database,
  remove: (limit: number) => RawBuilder<unknown>,
): Promise<number> {
  let removed = 0;
  for (;;) {
    const rows = affected(await remove(BATCH).execute(db));
    removed += rows;
    if (rows < BATCH) return removed;
  }
}

export function affected({ numAffectedRows }: QueryResult<unknown>): number {
  return Number(numAffectedRows ?? 0);
}
