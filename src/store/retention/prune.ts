import { sql } from "kysely";
import type { Database } from "../db/database.ts";

/** Rows that one statement removes at most: a long delete would hold up vacuum and replicas. */
const BATCH = 10_000;

/** Removes ended requests from the ledger; coverage keeps its own fetch numbers. Returns how many went. */
export async function pruneFetches(
  db: Database,
  { sourceId, keepDays }: { sourceId: number; keepDays: number },
): Promise<number> {
  return inBatches(async (limit) => {
    const { numAffectedRows } = await sql`
      delete from usage.fetch
      where fetch_number in (
        select fetch_number from usage.fetch
        where source_id = ${sourceId} and fetched_at < now() - make_interval(days => ${keepDays}) limit ${limit}
      )
    `.execute(db);
    return Number(numAffectedRows ?? 0);
  });
}

/** Removes the finished slices of backfills that ended long ago; the backfill's own row stays. */
export async function pruneSlices(
  db: Database,
  { sourceId, keepDays }: { sourceId: number; keepDays: number },
): Promise<number> {
  return inBatches(async (limit) => {
    const { numAffectedRows } = await sql`
      delete from usage.slice
      where slice_id in (
        select s.slice_id from usage.slice s join usage.backfill b using (backfill_id)
        where s.source_id = ${sourceId} and b.finished_at < now() - make_interval(days => ${keepDays}) limit ${limit}
      )
    `.execute(db);
    return Number(numAffectedRows ?? 0);
  });
}

/** Removes stored names of users; `keepDigests` leaves those that are digests already. */
export async function forgetUserNames(
  db: Database,
  { sourceId, keepDigests }: { sourceId: number; keepDigests: boolean },
): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from usage.entity_name n using usage.entity e
    where e.entity_id = n.entity_id and e.source_id = ${sourceId} and e.dimension = 'user'
      and not (${keepDigests} and n.name like 'sha256:%')
  `.execute(db);
  return Number(numAffectedRows ?? 0);
}

/** Removes in statements of bounded size until one finds less than it may take. */
export async function inBatches(remove: (limit: number) => Promise<number>): Promise<number> {
  let removed = 0;
  for (;;) {
    const rows = await remove(BATCH);
    removed += rows;
    if (rows < BATCH) return removed;
  }
}
