import type { RangeLine } from "../../domain/coverage/range-status.ts";
import { alignRange } from "../../domain/planning/windows.ts";
import { intervalOf } from "../../domain/time/days.ts";
import type { Meter } from "../../domain/usage/meter.ts";
import { GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";
import { type PlannableSource, plannableSource } from "../../store/activity/plan-facts.ts";
import { ensureScopes } from "../../store/catalog/scopes.ts";
import { learnedMeters } from "../../store/catalog/source-meters.ts";
import { rangeStatus } from "../../store/coverage/range-status.ts";
import type { Database } from "../../store/db/database.ts";
import type { Backfill } from "../../store/work/backfills.ts";
import { byMeter, clipToFuture, type Want } from "./plan.ts";

export interface Requested {
  readonly wanted: readonly Want[];
  readonly groupings?: readonly GroupBy[];
  readonly workspaceIds: readonly string[];
}

export async function statusOfRequested(
  db: Database,
  {
    sourceId,
    dataStart,
    meters,
    capabilities,
  }: Pick<PlannableSource, "sourceId" | "dataStart" | "meters" | "capabilities">,
  { wanted: all, groupings = GROUPINGS, workspaceIds }: Requested,
): Promise<RangeLine[]> {
  const lines: RangeLine[] = [];
  const unknown = (await learnedMeters(db, sourceId)).filter(({ state }) => state === "not_known");
  const isCounted = (meter: Meter) => meters.has(meter) || unknown.some((one) => one.meter === meter);
  for (const [meter, some] of byMeter(all)) {
    // A workspace that was never planned has no scopes, but each of its days is missing.
    await ensureScopes(db, { sourceId, meter, groupings, strides: some.map(({ stride }) => stride) });
    const wanted = some.flatMap(({ stride, range }) => {
      const required = alignRange(range, stride, meters.get(meter) ?? dataStart);
      const isUnavailable = !isCounted(meter) || capabilities.has(`no_${stride}`);
      return required === undefined ? [] : [{ stride, range: required, isUnavailable }];
    });
    lines.push(...(await rangeStatus(db, { sourceId, meter, groupings, workspaceIds, wanted })));
  }
  return lines;
}

export async function rangeOfBackfill(db: Database, backfill: Backfill): Promise<RangeLine[]> {
  const source = await plannableSource(db, backfill.source);
  if (source === undefined) return [];
  const { stride, createdAt, groupings, workspaceIds, meter } = backfill;
  const clipped = clipToFuture(source, intervalOf(backfill), stride, Date.parse(createdAt));
  const wanted = clipped === undefined ? [] : [{ meter, stride, range: clipped }];
  return statusOfRequested(db, source, { wanted, groupings, workspaceIds });
}
