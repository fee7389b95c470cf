import { alignRange } from "../../domain/planning/windows.ts";
import { DAY_MS, floorToGrid, type Stride } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { METER, METERS, type Meter } from "../../domain/usage/meter.ts";
import { GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";
import { loadedMeters } from "../../store/catalog/scopes.ts";
import { daysDue, hoursDue } from "../../store/proof/days-due.ts";
import { storedStrides } from "../../store/proof/differences.ts";
import { endUnread } from "../../store/proof/end-differences.ts";
import { storeNow } from "../../store/work/fetch-ledger.ts";
import type { OnProgress } from "../extract/sequentially.ts";
import { type OpenSource, startOf } from "../source/source.ts";
import { MOST_NAMED, type Repaired, reconcileParts, type StrideResult } from "./reconcile-parts.ts";

export interface ReconcileRequest {
  readonly range: Interval;
  readonly stride?: Stride | undefined;
  readonly groupings?: readonly GroupBy[] | undefined;
  readonly meter?: Meter | undefined;
  readonly repair: boolean;
}

export interface ReconcileResult extends Omit<StrideResult, "meter" | "stride" | "notCompared"> {
  readonly strides: readonly StrideResult[];
  readonly otherStrides: readonly {
    readonly meter: Meter;
    readonly stride: Stride;
    readonly differences: number;
  }[];
  readonly notExported: readonly Meter[];
}

const EXPORTED = METERS.filter((meter) => METER[meter].isExported);

/**
 * Compares final buckets with the platform's CSV export. With `repair`, each difference is fetched again as JSON, then compared
 * with a new export, in the fewest windows. If the two still differ, the JSON's count stays and the difference is kept.
 */
export async function reconcile(
  source: OpenSource,
  { stride: only, meter: onlyMeter, repair, groupings = GROUPINGS, range: requested }: ReconcileRequest,
  onProgress?: OnProgress,
): Promise<ReconcileResult> {
  const { sourceId, store, workspaceIds } = source;
  const findStored = () =>
    storedStrides(store.db, {
      sourceId,
      groupings,
      range: requested,
      workspaceIds,
    });
  const before = await findStored();
  const isLoaded = (meter: Meter, stride: Stride) =>
    before.some((one) => one.meter === meter && one.stride === stride);
  // Equal days do not prove equal hours: a count may move within a day.
  const wanted: readonly Stride[] = only === undefined ? ["day", "hour"] : [only];
  const compared = EXPORTED.filter((meter) => onlyMeter === undefined || meter === onlyMeter).flatMap(
    (meter) =>
      wanted
        // Missing time of traces is always reported. Missing time of another meter is reported on request.
        .filter(
          (stride) => meter === "traces" || isLoaded(meter, stride) || (onlyMeter && stride === wanted[0]),
        )
        .map((stride) => ({ meter, stride })),
  );
  const strides: StrideResult[] = [];
  for (const { meter, stride } of compared) {
    const range = alignRange(requested, stride, startOf(source, meter));
    const partsOf = () => (range === undefined ? [] : [range]);
    strides.push(await reconcileParts(source, { meter, groupings, stride, repair, partsOf }, onProgress));
  }
  const isCompared = (one: { meter: Meter; stride: Stride }) =>
    compared.some(({ meter, stride }) => meter === one.meter && stride === one.stride);
  const stored = await findStored();
  const otherStrides = stored.filter((one) => METER[one.meter].isExported && !isCompared(one));
  const isNotExported = (meter: Meter) =>
    !METER[meter].isExported && stored.some((one) => one.meter === meter);
  const notExported = onlyMeter === undefined ? METERS.filter(isNotExported) : [];
  const { meter: _, stride: __, notCompared: ___, ...all } = strides.reduce(added);
  return { ...all, strides, otherStrides, notExported };
}

function added(a: StrideResult, b: StrideResult): StrideResult {
  const both = a.repaired !== undefined && b.repaired !== undefined;
  const repaired = both ? addedRepairs(a.repaired, b.repaired) : (a.repaired ?? b.repaired);
  return {
    ...a,
    windows: a.windows + b.windows,
    requests: a.requests + b.requests,
    compared: a.compared + b.compared,
    unverified: a.unverified + b.unverified,
    moved: a.moved + b.moved,
    open: a.open + b.open,
    platformDisagrees: a.platformDisagrees + b.platformDisagrees,
    failures: [...a.failures, ...b.failures],
    differences: [...a.differences, ...b.differences].slice(0, MOST_NAMED),
    ...(repaired === undefined ? {} : { repaired }),
  };
}

function addedRepairs(a: Repaired, b: Repaired): Repaired {
  return {
    differences: a.differences + b.differences,
    mended: a.mended + b.mended,
    withdrawn: a.withdrawn + b.withdrawn,
    run: {
      counts: [...a.run.counts, ...b.run.counts],
      failures: [...a.run.failures, ...b.run.failures],
    },
  };
}

/**
 * Reconciles, with repair, the last `days` days and earlier due days, then the due hours of traces. Hours come last, so that
 * the hours of a restated day are compared the same night. 31 days of hours take 34 requests a scope, the days one.
 */
export async function reconcileScheduled(
  source: OpenSource,
  { days }: { days: number },
): Promise<readonly StrideResult[]> {
  const { sourceId, store, dataStart, capabilities, settings, workspaceIds } = source;
  await endUnread(store.db, { sourceId, workspaceIds });
  const now = await storeNow(store.db);
  const today = floorToGrid(now, DAY_MS);
  const from = (ms: number, start = dataStart) => Math.max(floorToGrid(now - ms, DAY_MS), start);
  const results: StrideResult[] = [];
  const loaded = await loadedMeters(store.db, sourceId);
  for (const meter of EXPORTED) {
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
