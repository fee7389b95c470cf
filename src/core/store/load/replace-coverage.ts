import { sql } from "kysely";
import { type FetchToken, loadedIntervalsOf } from "../../domain/coverage/finality.ts";
import { subtract } from "../../domain/time/intervals.ts";
import type { Window } from "../../domain/time/window.ts";
import { clearTime, multirangeText, overlaps, toLoadedInterval } from "../catalog/scope-time.ts";
import type { Database } from "../db/database.ts";
import type { OverlappedRow, ResponseDigests } from "./digests.ts";

interface LoadedWindow {
  readonly window: Window;
  readonly fetchToken: FetchToken;
  readonly settleAfterMs: number;
}

interface Replacing {
  readonly scopeIds: readonly number[];
  readonly replaced: readonly OverlappedRow[];
  readonly digests: ResponseDigests;
  readonly epoch: number;
  readonly isKnown: boolean;
}

export async function replaceCoverage(
  db: Database,
  { window, fetchToken, settleAfterMs }: LoadedWindow,
  { scopeIds, replaced, digests, epoch, isKnown }: Replacing,
): Promise<void> {
  const intervals = scopeIds.flatMap((scopeId) => {
    const before = replaced.filter((row) => row.scope_id === scopeId);
    const finalBefore = before.filter((row) => row.final).map(toLoadedInterval);
    return loadedIntervalsOf(window, fetchToken, { settleAfterMs, finalBefore }).map((interval) => ({
      ...interval,
      scopeId,
      becomesFinal: interval.final && subtract([interval], finalBefore).length > 0,
      isStored: before.some((row) => isSameTime(toLoadedInterval(row), interval)),
    }));
  });
  if (isKnown && intervals.length === replaced.length && intervals.every(({ isStored }) => isStored)) {
    // Only the fetch token is new, so no index or digest changes.
    const fetch = { fetch_number: fetchToken.fetchNumber, fetched_at: new Date(fetchToken.fetchedAt) };
    const covered = overlaps({ scopeIds, period: window });
    await db.updateTable("usage.coverage").set(fetch).where(covered).execute();
  } else {
    if (replaced.length > 0) await clearTime(db, "coverage", { scopeIds, period: window });
    const rows = intervals.map(
      ({ scopeId, start, end, final, fetchNumber, fetchedAt }) => sql`(
        ${scopeId}, ${new Date(start)}, ${new Date(end)}, ${final}, ${fetchNumber}, ${new Date(fetchedAt)},
        ${multirangeText(digests.traced(scopeId, { start, end }))}, ${digests.of(scopeId, { start, end }) ?? null}, ${epoch}
      )`,
    );
    await sql`
      insert into usage.coverage
        (scope_id, period_start, period_end, final, fetch_number, fetched_at, traced, digest, digest_epoch)
      values ${sql.join(rows)}
    `.execute(db);
  }
  if (window.stride === "day" && intervals.some(({ becomesFinal }) => becomesFinal))
    await noteFinalDays(db, scopeIds);
}

type Final = { readonly start: number; readonly end: number; readonly final: boolean };

function isSameTime(one: Final, other: Final): boolean {
  return one.start === other.start && one.end === other.end && one.final === other.final;
}

/** Notes that the final time of day scopes is final since the load's instant, except time that is noted already. */
async function noteFinalDays(db: Database, scopeIds: readonly number[]): Promise<void> {
  await sql`
    insert into usage.became_final (scope_id, period_start, period_end, final_at)
    select c.scope_id, lower(part), upper(part), (select usage.load_instant())
    from (
      select scope_id, range_agg(tstzrange(period_start, period_end)) as final
      from usage.coverage
      where final and scope_id = any (${scopeIds}::integer[])
      group by scope_id
    ) c
    cross join lateral unnest(c.final - coalesce((
      select range_agg(tstzrange(s.period_start, s.period_end)) from usage.became_final s where s.scope_id = c.scope_id
    ), '{}')) part
    order by 1, 2
  `.execute(db);
}
