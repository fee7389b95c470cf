import { DAY_MS, floorToGrid, type Stride } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { GROUPINGS } from "../../domain/usage/record.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { endUnread } from "../../store/reconcile/ended.ts";
import { daysDue, hoursDue } from "../../store/reconcile/reconciled-days.ts";
import type { OpenSource } from "../source/source.ts";
import { reconcileParts, type StrideResult } from "./reconcile.ts";

/**
 * The scheduled pass, with repair: the last `days` days, earlier days that are due (see `daysDue`), then the hours that
 * are due (see `hoursDue`). Hours come last, so that a restated day has its hours compared the same night. Hours are
 * compared once and not every night: 31 days of them take 34 requests a scope, where the days take one.
 */
export async function reconcileScheduled(
  source: OpenSource,
  { days }: { days: number },
): Promise<readonly StrideResult[]> {
  const { sourceId, store, dataStart, capabilities, settings, workspaces } = source;
  await endUnread(store.db, { sourceId, workspaceIds: workspaces.map((one) => one.workspaceId) });
  const now = await storeNow(store.db);
  const today = floorToGrid(now, DAY_MS);
  const from = (ms: number) => Math.max(floorToGrid(now - ms, DAY_MS), dataStart);
  const results: StrideResult[] = [];
  const recent = { start: from(days * DAY_MS), end: today };
  if (!capabilities.has("no_day") && dataStart < today) {
    const due = await daysDue(store.db, { sourceId, range: { start: dataStart, end: today } });
    results.push(await pass(source, "day", due, recent));
  }
  if (!capabilities.has("no_hour") && dataStart < today) {
    const range = { start: dataStart, end: today };
    const keptFrom = from(settings.hourlyForMs);
    results.push(await pass(source, "hour", await hoursDue(store.db, { sourceId, range, keptFrom })));
  }
  return results;
}

async function pass(
  source: OpenSource,
  stride: Stride,
  due: readonly { scopeId: number; day: number }[],
  everywhere?: Interval,
): Promise<StrideResult> {
  const byScope = Map.groupBy(due, (one) => one.scopeId);
  return reconcileParts(source, {
    groupings: GROUPINGS,
    stride,
    repair: true,
    partsOf: ({ scopeId }) => [
      ...(everywhere === undefined ? [] : [everywhere]),
      ...(byScope.get(scopeId)?.map(({ day }) => ({ start: day, end: day + DAY_MS })) ?? []),
    ],
  });
}
