import { normalize, subtract } from "../time/intervals.ts";
import { STRIDE_MS, type Stride, TIER_BUCKETS } from "../time/stride.ts";
import type { Interval, Window } from "../time/window.ts";
import { GROUPINGS, type GroupBy } from "../usage/record.ts";
import { alignRange, planWindows } from "./windows.ts";

/** Very many ids in one URL fail (platform-facts.md): 50 UUIDs are about 2.6 KB of it. */
export const WORKSPACES_PER_REQUEST = 50;

/** What one request asks for. `scopeIds[i]` is the scope of `workspaceIds[i]`. */
export interface Slice {
  readonly groupBy: GroupBy;
  readonly window: Window;
  readonly workspaceIds: readonly string[];
  readonly scopeIds: readonly number[];
}

/** A scope, and the parts of its time that need no fetch. */
export interface KnownScope {
  readonly scopeId: number;
  readonly groupBy: GroupBy;
  readonly stride: Stride;
  readonly workspaceId: string;
  /** Settled coverage, and failures whose time to ask again has not come. */
  readonly done: readonly Interval[];
}

interface SliceDemand {
  /** All scopes that may be loaded, of the wanted strides and every finer one. */
  readonly scopes: readonly KnownScope[];
  readonly wanted: readonly { readonly stride: Stride; readonly range: Interval }[];
  /** Nothing before is asked for, epoch milliseconds. */
  readonly dataStart: number;
}

/**
 * The slices that load what is wanted and not done: by workspace before the other groupings (their answers show who can
 * be read), then newest first. Scopes by workspace that lack the same time share requests; time that the wanted
 * stride's tier does not fit is planned, and looked up, in the finer strides.
 */
export function planSlices({ scopes, wanted, dataStart }: SliceDemand): Slice[] {
  const byKey = new Map(
    scopes.map((scope) => [`${scope.groupBy} ${scope.workspaceId} ${scope.stride}`, scope]),
  );
  const members = new Map<string, { window: Window; groupBy: GroupBy; scopes: KnownScope[] }>();
  for (const { stride, range } of wanted) {
    for (const scope of scopes) {
      if (scope.stride !== stride) continue;
      const inStride = (finer: Stride) => byKey.get(`${scope.groupBy} ${scope.workspaceId} ${finer}`);
      for (const window of lackingWindows(range, stride, dataStart, inStride)) {
        const alone = scope.groupBy === "workspace" ? "" : scope.workspaceId;
        const key = `${scope.groupBy} ${alone} ${window.stride} ${window.start} ${window.end}`;
        const one = members.get(key) ?? { window, groupBy: scope.groupBy, scopes: [] };
        members.set(key, one);
        const target = inStride(window.stride) as KnownScope;
        if (!one.scopes.includes(target)) one.scopes.push(target);
      }
    }
  }
  const slices = [...members.values()].flatMap(({ window, groupBy, scopes: all }) =>
    batchesOf(all).map((batch) => ({
      groupBy,
      window,
      workspaceIds: batch.map((scope) => scope.workspaceId),
      scopeIds: batch.map((scope) => scope.scopeId),
    })),
  );
  return slices.sort(
    (a, b) => GROUPINGS.indexOf(a.groupBy) - GROUPINGS.indexOf(b.groupBy) || b.window.start - a.window.start,
  );
}

/** Windows over the parts of a range that are not done in their own stride. */
function lackingWindows(
  range: Interval,
  stride: Stride,
  dataStart: number,
  inStride: (stride: Stride) => KnownScope | undefined,
): Window[] {
  const scope = inStride(stride);
  const aligned = alignRange(range, stride, dataStart);
  if (scope === undefined || aligned === undefined) return [];
  const lacking = subtract([aligned], scope.done).flatMap((part) => alignRange(part, stride) ?? []);
  return normalize(lacking)
    .flatMap((part) => planWindows(part, stride))
    .flatMap((window) =>
      window.stride === stride ? [window] : lackingWindows(window, window.stride, dataStart, inStride),
    );
}

function batchesOf(scopes: readonly KnownScope[]): KnownScope[][] {
  const count = Math.ceil(scopes.length / WORKSPACES_PER_REQUEST);
  return Array.from({ length: count }, (_, i) =>
    scopes.slice(i * WORKSPACES_PER_REQUEST, (i + 1) * WORKSPACES_PER_REQUEST),
  );
}

/**
 * The fewest requests that can cover the time of these slices: for each set of workspaces, the length of every gapless
 * run of time over the longest window of the tier. A bound of its own, not what was planned.
 */
export function fewestRequests(slices: readonly Slice[]): number {
  const together = Map.groupBy(
    slices,
    (slice) => `${slice.groupBy} ${slice.window.stride} ${slice.workspaceIds.join()}`,
  );
  return [...together.values()].reduce((sum, group) => {
    const { stride } = (group as [Slice])[0].window;
    const longest = TIER_BUCKETS[stride].max * STRIDE_MS[stride];
    const runs = normalize(group.map((slice) => slice.window));
    return sum + runs.reduce((requests, run) => requests + Math.ceil((run.end - run.start) / longest), 0);
  }, 0);
}
