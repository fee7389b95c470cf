import { sql } from "kysely";
import { cutOut, type FetchStamp } from "../../domain/planning/coverage.ts";
import { STRIDE_MS } from "../../domain/time/stride.ts";
import type { Interval, Window } from "../../domain/time/window.ts";
import type { Database, Transaction } from "../db/database.ts";

interface Fragment extends Interval {
  readonly scopeId: number;
  readonly fetchNumber: number;
  readonly reconciledAt: number;
}

/**
 * Keeps that a window was held against its export, without the buckets that have a difference left. The newest export wins,
 * whenever it comes; one whose end nothing proves says nothing of what is missing, so by it nothing is reconciled. Under the
 * scopes' lock.
 */
export async function markReconciled(
  { db }: Transaction,
  marked: {
    window: Window;
    stamp: FetchStamp;
    scopeIds: readonly number[];
    whole: boolean;
    /** Where nothing was found, nothing is left: a whole export ends what it does not show. */
    isClean: boolean;
  },
): Promise<void> {
  const { window, stamp, scopeIds, whole, isClean } = marked;
  if (!whole || scopeIds.length === 0) return;
  const overlapping = await takeOverlapping(db, marked);
  const left = isClean ? [] : await unresolvedBuckets(db, marked);
  const bucketMs = STRIDE_MS[window.stride];
  const fragments = scopeIds.flatMap((scopeId) => {
    const before = overlapping.filter((fragment) => fragment.scopeId === scopeId);
    const newer = before.filter((fragment) => fragment.fetchNumber > stamp.fetchNumber);
    const older = before.filter((fragment) => fragment.fetchNumber <= stamp.fetchNumber);
    const own: Fragment[] = [
      {
        scopeId,
        start: window.start,
        end: window.end,
        fetchNumber: stamp.fetchNumber,
        reconciledAt: stamp.fetchedAt,
      },
    ];
    const holes: Interval[] = [
      ...newer,
      ...left
        .filter((one) => one.scopeId === scopeId)
        .map(({ bucketStart }) => ({ start: bucketStart, end: bucketStart + bucketMs })),
    ];
    return [...newer, ...cutOut(older, window), ...holes.reduce((parts, hole) => cutOut(parts, hole), own)];
  });
  if (fragments.length === 0) return;
  await sql`
    insert into usage.reconciled (scope_id, period_start, period_end, fetch_number, reconciled_at)
    select * from unnest(
      ${fragments.map((f) => f.scopeId)}::integer[], ${fragments.map((f) => new Date(f.start))}::timestamptz[],
      ${fragments.map((f) => new Date(f.end))}::timestamptz[], ${fragments.map((f) => f.fetchNumber)}::bigint[],
      ${fragments.map((f) => new Date(f.reconciledAt))}::timestamptz[]
    )
  `.execute(db);
}

async function takeOverlapping(
  db: Database,
  { window, scopeIds }: { window: Interval; scopeIds: readonly number[] },
): Promise<Fragment[]> {
  const rows = await db
    .deleteFrom("reconciled")
    .where(sql<boolean>`scope_id = any (${[...scopeIds]}::integer[])`)
    .where("period_start", "<", new Date(window.end))
    .where("period_end", ">", new Date(window.start))
    .returningAll()
    .execute();
  return rows.map((row) => ({
    scopeId: row.scope_id,
    start: row.period_start.getTime(),
    end: row.period_end.getTime(),
    fetchNumber: row.fetch_number,
    reconciledAt: row.reconciled_at.getTime(),
  }));
}

async function unresolvedBuckets(
  db: Database,
  { window, scopeIds }: { window: Interval; scopeIds: readonly number[] },
): Promise<{ scopeId: number; bucketStart: number }[]> {
  const rows = await db
    .selectFrom("reconciliation_difference")
    .select(["scope_id", "bucket_start"])
    .distinct()
    .where("state", "in", ["open", "platform_disagrees"])
    .where(sql<boolean>`scope_id = any (${[...scopeIds]}::integer[])`)
    .where("bucket_start", ">=", new Date(window.start))
    .where("bucket_start", "<", new Date(window.end))
    .execute();
  return rows.map((row) => ({ scopeId: row.scope_id, bucketStart: row.bucket_start.getTime() }));
}
