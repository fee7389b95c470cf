import { intersect, normalize } from "../time/intervals.ts";
import { ceilToGrid, floorToGrid, STRIDE_MS, type Stride, TIER_BUCKETS } from "../time/stride.ts";
import type { Interval, Window } from "../time/window.ts";
import type { GroupBy } from "../usage/record.ts";
import { type Slice, WORKSPACES_PER_REQUEST } from "./slice.ts";

/**
 * The fewest windows of a stride's tier, inside `within`, that hold all of these buckets (their starts, epoch milliseconds). They
 * begin and end with a bucket of these unless the tier asks for more. A bucket in no part of `within` that is long enough for the
 * tier is left out.
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
      // As far as one window reaches from here, then back to the last bucket that is asked for.
      const reach = Math.min(bucket + max * size, end);
      const last = sorted.findLast((other) => other + size <= reach) as number;
      const to = Math.min(Math.max(last + size, bucket + min * size), end);
      windows.push({ start: Math.min(bucket, to - min * size), end: to, stride });
    }
    return windows;
  });
}

/** Buckets to be fetched again for one scope, and the time in which its windows may lie. */
export interface CoveredScope {
  readonly scopeId: number;
  readonly groupBy: GroupBy;
  readonly workspaceId: string;
  readonly buckets: readonly number[];
  readonly within: readonly Interval[];
}

/** The fewest slices of one stride that hold these buckets. Scopes by workspace share requests where their time allows. */
export function coverSlices(scopes: readonly CoveredScope[], stride: Stride): Slice[] {
  const shared = scopes.filter((scope) => scope.groupBy === "workspace");
  const batches = Array.from({ length: Math.ceil(shared.length / WORKSPACES_PER_REQUEST) }, (_, i) =>
    shared.slice(i * WORKSPACES_PER_REQUEST, (i + 1) * WORKSPACES_PER_REQUEST),
  );
  return [
    ...batches.flatMap((batch) => coverTogether(batch, stride)),
    ...scopes
      .filter((scope) => scope.groupBy !== "workspace")
      .flatMap((scope) =>
        coverBuckets(scope.buckets, stride, scope.within).map((window) => sliceOf(window, [scope])),
      ),
  ];
}

/** In common time by common windows, the rest each for itself. */
function coverTogether(batch: readonly CoveredScope[], stride: Stride): Slice[] {
  const common = batch.map((scope) => [...scope.within]).reduce((a, b) => intersect(a, b));
  const windows = coverBuckets(
    batch.flatMap((scope) => scope.buckets),
    stride,
    common,
  );
  const isIn = (window: Interval) => (bucket: number) => bucket >= window.start && bucket < window.end;
  return [
    ...windows.flatMap((window) => {
      const needing = batch.filter((scope) => scope.buckets.some(isIn(window)));
      return needing.length === 0 ? [] : [sliceOf(window, needing)];
    }),
    ...batch.flatMap((scope) => {
      const left = scope.buckets.filter((bucket) => !windows.some((window) => isIn(window)(bucket)));
      return coverBuckets(left, stride, scope.within).map((window) => sliceOf(window, [scope]));
    }),
  ];
}

function sliceOf(window: Window, scopes: readonly CoveredScope[]): Slice {
  const [{ groupBy }] = scopes as [CoveredScope];
  return {
    groupBy,
    window,
    workspaceIds: scopes.map((scope) => scope.workspaceId),
    scopeIds: scopes.map((scope) => scope.scopeId),
  };
}
