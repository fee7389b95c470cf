import { sql } from "kysely";
import { loadedIntervalsOf } from "../../domain/coverage/coverage.ts";
import { clearTime, overlaps, toLoadedInterval } from "../catalog/scope-time.ts";
import type { Database } from "../db/database.ts";
import type { AnswerDigests, OverlappedRow } from "./digests.ts";
import type { WholeAnswer } from "./load.ts";

interface Replacing {
  /** Whose window was read. */
  readonly scopeIds: readonly number[];
  /** Their coverage that the window overlaps. */
  readonly replaced: readonly OverlappedRow[];
  readonly digests: AnswerDigests;
  readonly epoch: number;
  /** The answer has the digests that `replaced` has. */
  readonly isKnown: boolean;
}

/** Enters the window's loaded intervals in place of what they overlap. Returns whether it now has final time. */
export async function replaceCoverage(
  db: Database,
  { window, stamp, settleAfterMs }: WholeAnswer,
  { scopeIds, replaced, digests, epoch, isKnown }: Replacing,
): Promise<boolean> {
  const intervals = scopeIds.flatMap((scopeId) => {
    const before = replaced.filter((row) => row.scope_id === scopeId);
    const finalBefore = before.filter((row) => row.final).map(toLoadedInterval);
    return loadedIntervalsOf(window, stamp, { settleAfterMs, finalBefore }).map((interval) => ({
      ...{ ...interval, scopeId },
      isStored: before.some((row) => isSameTime(toLoadedInterval(row), interval)),
    }));
  });
  const hasFinal = intervals.some(({ final }) => final);
  if (isKnown && intervals.length === replaced.length && intervals.every(({ isStored }) => isStored)) {
    // Only who says it, and when, is new: nothing is written that an index or a digest would have to follow.
    await db
      .updateTable("coverage")
      .set({ fetch_number: stamp.fetchNumber, fetched_at: new Date(stamp.fetchedAt) })
      .where(overlaps({ scopeIds, period: window }))
      .execute();
    return hasFinal;
  }
  if (replaced.length > 0) await clearTime(db, "coverage", { scopeIds, period: window });
  const rows = intervals.map(({ scopeId, start, end, final, fetchNumber, fetchedAt }) => ({
    scope_id: scopeId,
    period_start: new Date(start),
    period_end: new Date(end),
    final,
    fetch_number: fetchNumber,
    fetched_at: new Date(fetchedAt),
    digest: digests.of(scopeId, { start, end }) ?? null,
    digest_epoch: epoch,
  }));
  await db.insertInto("coverage").values(rows).execute();
  return hasFinal;
}

type Final = { readonly start: number; readonly end: number; readonly final: boolean };

function isSameTime(one: Final, other: Final): boolean {
  return one.start === other.start && one.end === other.end && one.final === other.final;
}

/** Notes that the final time of day scopes is final since the load's instant, except time that is noted already. */
export async function noteFinalDays(db: Database, scopeIds: readonly number[]): Promise<void> {
  await sql`
    insert into usage.became_final (scope_id, period_start, period_end, final_at)
    select c.scope_id, lower(part), upper(part), (select usage.load_instant())
    from (
      select scope_id, range_agg(tstzrange(period_start, period_end)) as final
      from usage.coverage
      where final and scope_id = any (${[...scopeIds]}::integer[])
      group by scope_id
    ) c
    cross join lateral unnest(c.final - coalesce((
      select range_agg(tstzrange(s.period_start, s.period_end)) from usage.became_final s where s.scope_id = c.scope_id
    ), '{}')) part
    order by 1, 2
  `.execute(db);
}
