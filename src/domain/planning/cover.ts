import { intersect, normalize } from "../time/intervals.ts";
import { ceilToGrid, floorToGrid, STRIDE_MS, type Stride, TIER_BUCKETS } from "../time/stride.ts";
import type { Interval, Window } from "../time/window.ts";
import { METERS, type Meter } from "../usage/meter.ts";
import { GROUPINGS, type GroupBy } from "../usage/record.ts";
import { batchesOf, type Member, type UsageRequest } from "./request.ts";

/**
 * The fewest windows of a stride's tier, inside `within`, that hold all of these buckets (their starts, epoch
 * milliseconds). They begin and end with one of these buckets unless the tier asks for more. A bucket is left out where
 * no part of `within` around it is long enough for the tier.
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
      // The last bucket that one window can reach from here.
      const reach = Math.min(bucket + max * size, end);
      const last = sorted.findLast((other) => other + size <= reach) as number;
      const to = Math.min(Math.max(last + size, bucket + min * size), end);
      windows.push({ start: Math.min(bucket, to - min * size), end: to, stride });
    }
    return windows;
  });
}

/** Buckets to be fetched again for one scope, and the time in which its windows may lie. */
export interface CoveredScope extends Member {
  readonly meter: Meter;
  readonly groupBy: GroupBy;
  readonly buckets: readonly number[];
  readonly within: readonly Interval[];
}

/** The fewest tasks of one stride that hold these buckets. Scopes by workspace share requests where their time allows. */
export function coverTasks(scopes: readonly CoveredScope[], stride: Stride): UsageRequest[] {
  return METERS.flatMap((meter) =>
    GROUPINGS.flatMap((groupBy) =>
      batchesOf(
        groupBy,
        scopes.filter((scope) => scope.meter === meter && scope.groupBy === groupBy),
      ).flatMap((batch) => coverTogether({ meter, groupBy }, batch, stride)),
    ),
  );
}

/** Common windows where all have time in common; the buckets that are left get windows of their own. */
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
