import { intersect, normalize } from "../time/intervals.ts";
import { ceilToGrid, floorToGrid, STRIDE_MS, type Stride, TIER_BUCKETS } from "../time/stride.ts";
import type { Interval, Window } from "../time/window.ts";
import { METERS, type Meter } from "../usage/meter.ts";
import { GROUPINGS, type GroupBy } from "../usage/record.ts";
import { batchesOf, type Member, requestsFor, type UsageRequest } from "./request.ts";
import { alignRange, planWindows } from "./windows.ts";

export interface PlannedScope extends Member {
  readonly groupBy: GroupBy;
  readonly stride: Stride;
  readonly missing: readonly Interval[];
}

interface TaskDemand {
  readonly meter: Meter;
  /** All scopes that may be loaded, of the wanted strides and every finer one. */
  readonly scopes: readonly PlannedScope[];
  readonly wanted: readonly { readonly stride: Stride; readonly range: Interval }[];
  /** Epoch ms. No request reaches further back. */
  readonly dataStart: number;
}

/**
 * Returns the requests that load missing time. Workspace requests come first, because their responses show which workspaces the
 * key can read. Then come days, which may make their hours needless, and then the newest time. Workspace scopes that miss the
 * same time share requests. Finer strides load time that does not fit the stride's tier.
 */
export function planTasks({ meter, scopes, wanted, dataStart }: TaskDemand): UsageRequest[] {
  const cells = Map.groupBy(scopes, (scope) => `${scope.groupBy} ${scope.workspaceId}`);
  const demands = new Map<string, Demand>();
  const demandOf = (groupBy: GroupBy, window: Window): Demand => {
    const key = `${groupBy} ${window.stride} ${window.start} ${window.end}`;
    const demand = demands.get(key) ?? { groupBy, window, members: new Set() };
    demands.set(key, demand);
    return demand;
  };
  const numberOf = numbering();
  for (const { stride, range } of wanted) {
    // Thousands of workspaces miss the same time and share one list of it, which is cut into windows once.
    const planned = new Map<string, readonly Demand[]>();
    for (const cell of cells.values()) {
      const inStride = (finer: Stride) => cell.findLast((scope) => scope.stride === finer);
      const groupBy = inStride(stride)?.groupBy;
      if (groupBy === undefined) continue;
      const alike = `${groupBy} ${cell.map((scope) => `${scope.stride} ${numberOf(scope.missing)}`).join()}`;
      const found =
        planned.get(alike) ??
        missingWindows(range, stride, dataStart, inStride).map((window) => demandOf(groupBy, window));
      planned.set(alike, found);
      for (const { window, members } of found) members.add(inStride(window.stride) as PlannedScope);
    }
  }
  const isOther = ({ groupBy }: Demand) => Number(groupBy !== "workspace");
  const isHours = ({ window }: Demand) => Number(window.stride === "hour");
  return [...demands.values()]
    .sort(
      (a, b) =>
        isOther(a) - isOther(b) ||
        isHours(a) - isHours(b) ||
        GROUPINGS.indexOf(a.groupBy) - GROUPINGS.indexOf(b.groupBy) ||
        b.window.start - a.window.start,
    )
    .flatMap(({ groupBy, window, members }) =>
      requestsFor({
        meter,
        groupBy,
        window,
        members: [...members].map(({ workspaceId, scopeId }) => ({ workspaceId, scopeId })),
      }),
    );
}

interface Demand {
  readonly groupBy: GroupBy;
  readonly window: Window;
  readonly members: Set<PlannedScope>;
}

function numbering(): (one: object) => number {
  const numbers = new Map<object, number>();
  return (one) => {
    const number = numbers.get(one) ?? numbers.size;
    numbers.set(one, number);
    return number;
  };
}

function missingWindows(
  range: Interval,
  stride: Stride,
  dataStart: number,
  inStride: (stride: Stride) => PlannedScope | undefined,
): Window[] {
  const scope = inStride(stride);
  const aligned = alignRange(range, stride, dataStart);
  if (scope === undefined || aligned === undefined) return [];
  const missing = intersect([aligned], scope.missing).flatMap((part) => alignRange(part, stride) ?? []);
  return normalize(missing)
    .flatMap((part) => planWindows(part, stride))
    .flatMap((window) =>
      window.stride === stride ? [window] : missingWindows(window, window.stride, dataStart, inStride),
    );
}

/**
 * Returns the fewest windows of a stride's tier, inside `within`, that contain these bucket starts (epoch ms). A window begins
 * and ends with one of these buckets, unless the tier needs a longer window. A bucket is left out if no part of `within` around
 * it is long enough for the tier.
 */
export function coverBuckets(
  buckets: readonly number[],
  stride: Stride,
  within: readonly Interval[],
): Window[] {
  const size = STRIDE_MS[stride];
  const { min, max } = TIER_BUCKETS[stride];
  const sorted = [...new Set(buckets)].sort((a, b) => a - b);
  return normalize(within).flatMap((part) => {
    const start = ceilToGrid(part.start, size);
    const end = floorToGrid(part.end, size);
    if ((end - start) / size < min) return [];
    const windows: Window[] = [];
    for (const bucket of sorted) {
      if (bucket < start || bucket + size > end || bucket < (windows.at(-1)?.end ?? start)) continue;
      const reach = Math.min(bucket + max * size, end);
      const last = sorted.findLast((other) => other + size <= reach) as number;
      const to = Math.min(Math.max(last + size, bucket + min * size), end);
      windows.push({ start: Math.min(bucket, to - min * size), end: to, stride });
    }
    return windows;
  });
}

export interface CoveredScope extends Member {
  readonly meter: Meter;
  readonly groupBy: GroupBy;
  readonly buckets: readonly number[];
  readonly within: readonly Interval[];
}

/** Returns the fewest requests of one stride that hold these buckets. Workspace scopes share requests where they can. */
export function coverTasks(scopes: readonly CoveredScope[], stride: Stride): UsageRequest[] {
  return METERS.flatMap((meter) =>
    GROUPINGS.flatMap((groupBy) =>
      batchesOf(
        { meter, groupBy },
        scopes.filter((scope) => scope.meter === meter && scope.groupBy === groupBy),
      ).flatMap((batch) => coverTogether({ meter, groupBy }, batch, stride)),
    ),
  );
}

/** Plans windows over the time that all scopes share. Other buckets get windows of one scope. */
function coverTogether(
  of: Pick<UsageRequest, "meter" | "groupBy">,
  batch: readonly CoveredScope[],
  stride: Stride,
): UsageRequest[] {
  const common = batch.map((scope) => [...scope.within]).reduce((a, b) => intersect(a, b));
  const buckets = batch.flatMap((scope) => scope.buckets);
  const windows = coverBuckets(buckets, stride, common);
  const isIn = (window: Interval) => (bucket: number) => bucket >= window.start && bucket < window.end;
  const requestFor = (window: Window, members: readonly CoveredScope[]) => ({
    ...of,
    window,
    members: members.map(({ workspaceId, scopeId }) => ({ workspaceId, scopeId })),
  });
  return [
    ...windows.map((window) =>
      requestFor(
        window,
        batch.filter((scope) => scope.buckets.some(isIn(window))),
      ),
    ),
    ...batch.flatMap((scope) => {
      const left = scope.buckets.filter((bucket) => !windows.some((window) => isIn(window)(bucket)));
      return coverBuckets(left, stride, scope.within).map((window) => requestFor(window, [scope]));
    }),
  ];
}
