import { DAY_MS, floorToGrid, type Stride } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { METERS, type Meter } from "../../domain/usage/meter.ts";
import { GROUPINGS } from "../../domain/usage/record.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { daysDue, hoursDue } from "../../store/proof/days-due.ts";
import { endUnread } from "../../store/proof/ended.ts";
import { loadedMeters } from "../../store/proof/loaded-meters.ts";
import type { OpenSource } from "../source/source.ts";
import { reconcileParts, type StrideResult } from "./reconcile.ts";

/**
 * The scheduled pass, with repair: the last `days` days, earlier days that are due (see `daysDue`), of whatever is loaded, then the
 * hours of traces that are due (see `hoursDue`). Hours come last, so that a restated day has its hours compared the same night. Hours are
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
  const from = (ms: number, start = dataStart) => Math.max(floorToGrid(now - ms, DAY_MS), start);
  const results: StrideResult[] = [];
  const loaded = await loadedMeters(store.db, sourceId);
  for (const meter of METERS) {
    const start = source.meters.get(meter);
    const isDue = meter === "traces" || loaded.includes(meter);
    if (capabilities.has("no_day") || start === undefined || start >= today || !isDue) continue;
    const due = await daysDue(store.db, { sourceId, meter, range: { start, end: today } });
    results.push(
      await pass(source, { meter, stride: "day" }, due, { start: from(days * DAY_MS, start), end: today }),
    );
  }
  if (!capabilities.has("no_hour") && dataStart < today) {
    const range = { start: dataStart, end: today };
    const keptFrom = from(settings.hourlyForMs);
    const due = await hoursDue(store.db, { sourceId, range, keptFrom });
    results.push(await pass(source, { meter: "traces", stride: "hour" }, due));
  }
  return results;
}

async function pass(
  source: OpenSource,
  of: { readonly meter: Meter; readonly stride: Stride },
  due: readonly { scopeId: number; day: number }[],
  everywhere?: Interval,
): Promise<StrideResult> {
  const byScope = Map.groupBy(due, (one) => one.scopeId);
  return reconcileParts(source, {
    groupings: GROUPINGS,
    ...of,
    repair: true,
    partsOf: ({ scopeId }) => [
      ...(everywhere === undefined ? [] : [everywhere]),
      ...(byScope.get(scopeId)?.map(({ day }) => ({ start: day, end: day + DAY_MS })) ?? []),
    ],
  });
}
