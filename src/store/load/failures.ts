import { sql } from "kysely";
import { cutOut, type FetchStamp } from "../../domain/planning/coverage.ts";
import type { Interval } from "../../domain/time/window.ts";
import { lockScopes } from "../catalog/scopes.ts";
import type { Database, Store } from "../db/database.ts";

interface NotedFailure {
  readonly scopeIds: readonly number[];
  readonly period: Interval;
  readonly stamp: FetchStamp;
  readonly state: "failed" | "unverified";
  readonly code: string;
  readonly message: string;
}

/** Keeps a failed slice, under the same lock that loads take. */
export async function failScopes(store: Store, failure: NotedFailure): Promise<void> {
  await store.transaction(async ({ db }) => {
    await lockScopes(db, failure.scopeIds);
    await noteFailures(db, failure);
  });
}

/**
 * Keeps that a part of time could not be loaded, and when to ask again: after an hour, doubling to a day (rule 12).
 * Where a newer fetch already loaded or failed it, this failure says nothing.
 */
export async function noteFailures(db: Database, failure: NotedFailure): Promise<void> {
  if (failure.scopeIds.length === 0) return;
  const { scopeIds, period, stamp, state, code, message } = failure;
  const newer = await newerThan(db, { scopeIds, period, fetchNumber: stamp.fetchNumber });
  const overlapped = await takeOverlapping(db, { scopeIds, period, olderThan: stamp.fetchNumber });
  const rows = scopeIds.flatMap((scopeId) => {
    const before = overlapped.filter((row) => row.scopeId === scopeId);
    const attempts = Math.max(0, ...before.map((row) => row.attempts)) + 1;
    const noted = newer
      .filter((part) => part.scopeId === scopeId)
      .reduce<Interval[]>((parts, hole) => cutOut(parts, hole), [{ start: period.start, end: period.end }]);
    return noted.map((part) => ({ ...part, scopeId, attempts }));
  });
  if (rows.length === 0) return;
  await db
    .insertInto("failure")
    .values(
      rows.map((row) => ({
        scope_id: row.scopeId,
        period_start: new Date(row.start),
        period_end: new Date(row.end),
        state,
        code,
        message,
        attempts: row.attempts,
        fetch_number: stamp.fetchNumber,
        failed_at: new Date(stamp.fetchedAt),
        retry_at: sql<Date>`${new Date(stamp.fetchedAt)}::timestamptz
          + least(interval '1 hour' * 2 ^ least(${row.attempts - 1}::integer, 10), interval '1 day')`,
      })),
    )
    .execute();
}

/** Removes what a load with a newer number has made good. */
export async function clearFailures(
  db: Database,
  cleared: { scopeIds: readonly number[]; period: Interval; olderThan: number },
): Promise<void> {
  await takeOverlapping(db, cleared);
}

interface ScopePart extends Interval {
  readonly scopeId: number;
}

async function newerThan(
  db: Database,
  asked: { scopeIds: readonly number[]; period: Interval; fetchNumber: number },
): Promise<ScopePart[]> {
  const { rows } = await sql<{ scope_id: number; period_start: Date; period_end: Date }>`
    select scope_id, period_start, period_end from usage.coverage
    where scope_id = any (${[...asked.scopeIds]}::integer[]) and fetch_number > ${asked.fetchNumber}
      and period_start < ${new Date(asked.period.end)} and period_end > ${new Date(asked.period.start)}
    union all
    select scope_id, period_start, period_end from usage.failure
    where scope_id = any (${[...asked.scopeIds]}::integer[]) and fetch_number >= ${asked.fetchNumber}
      and period_start < ${new Date(asked.period.end)} and period_end > ${new Date(asked.period.start)}
  `.execute(db);
  return rows.map((row) => ({
    scopeId: row.scope_id,
    start: row.period_start.getTime(),
    end: row.period_end.getTime(),
  }));
}

/** Takes older failures out of a period, leaving what sticks out of it, and returns what was there. */
async function takeOverlapping(
  db: Database,
  taken: { scopeIds: readonly number[]; period: Interval; olderThan: number },
): Promise<(ScopePart & { attempts: number })[]> {
  const removed = await db
    .deleteFrom("failure")
    .where(sql<boolean>`scope_id = any (${[...taken.scopeIds]}::integer[])`)
    .where("period_start", "<", new Date(taken.period.end))
    .where("period_end", ">", new Date(taken.period.start))
    .where("fetch_number", "<", taken.olderThan)
    .returningAll()
    .execute();
  const parts = removed.map((row) => ({
    ...row,
    start: row.period_start.getTime(),
    end: row.period_end.getTime(),
  }));
  const rest = cutOut(parts, taken.period).map(({ start, end, ...row }) => ({
    ...row,
    period_start: new Date(start),
    period_end: new Date(end),
  }));
  if (rest.length > 0) await db.insertInto("failure").values(rest).execute();
  return parts.map((row) => ({
    scopeId: row.scope_id,
    start: row.start,
    end: row.end,
    attempts: row.attempts,
  }));
}
