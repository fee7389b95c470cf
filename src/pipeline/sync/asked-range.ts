import { type RangeLine, rangeStatus } from "../../domain/coverage/range-status.ts";
import { STRIDES, type Stride } from "../../domain/time/stride.ts";
import { GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";
import { type PlannableSource, plannableSource } from "../../store/activity/plan-facts.ts";
import { ensureScopes, scopeStates } from "../../store/catalog/scopes.ts";
import type { Database } from "../../store/db/database.ts";
import type { Backfill } from "../../store/work/backfills.ts";
import { byMeter, clipToFuture, type Want, wholeDaysOf } from "./plan.ts";

/** What somebody asked to have loaded. */
export interface Asked {
  readonly wanted: readonly Want[];
  /** Default: all. */
  readonly groupings?: readonly GroupBy[];
  /** Platform ids. */
  readonly workspaceIds: readonly string[];
}

/** What the tables say about the time that was asked for, whoever loaded it. */
export async function statusOfAsked(
  db: Database,
  source: Pick<PlannableSource, "sourceId" | "dataStart" | "meters" | "capabilities">,
  { wanted: all, groupings = GROUPINGS, workspaceIds }: Asked,
): Promise<RangeLine[]> {
  const { sourceId, dataStart, meters, capabilities } = source;
  const ids = new Set(workspaceIds);
  const lines: RangeLine[] = [];
  for (const [meter, wanted] of byMeter(all)) {
    // A workspace that was never planned has no scopes, but each of its days is missing.
    await ensureScopes(db, { sourceId, meter, groupings, strides: wanted.map(({ stride }) => stride) });
    const coarsest = Math.max(...wanted.map(({ stride }) => STRIDES.indexOf(stride)));
    const states = await scopeStates(db, {
      sourceId,
      meter,
      groupings,
      strides: STRIDES.slice(0, coarsest + 1),
      // Not all of history: what ends before the time or begins after it decides nothing.
      within: wholeDaysOf(wanted),
    });
    const isUnavailable = (stride: Stride) => !meters.has(meter) || capabilities.has(`no_${stride}`);
    const known = states.filter((state) => ids.has(state.workspaceId));
    lines.push(
      ...rangeStatus({
        meter,
        wanted,
        dataStart: meters.get(meter) ?? dataStart,
        known,
        unavailable: new Set(STRIDES.filter(isUnavailable)),
      }),
    );
  }
  return lines;
}

/** What the tables say now about the range of a backfill, whoever loaded it. */
export async function rangeOfBackfill(db: Database, backfill: Backfill): Promise<RangeLine[]> {
  const source = await plannableSource(db, backfill.source);
  if (source === undefined) return [];
  const { from, to, stride, createdAt, groupings, workspaceIds, meter } = backfill;
  const range = { start: Date.parse(from), end: Date.parse(to) };
  const clipped = clipToFuture(source, range, stride, Date.parse(createdAt));
  const wanted = clipped === undefined ? [] : [{ meter, stride, range: clipped }];
  return statusOfAsked(db, source, { wanted, groupings, workspaceIds });
}
