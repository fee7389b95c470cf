import { intersect, normalize } from "../time/intervals.ts";
import type { Stride } from "../time/stride.ts";
import type { Interval, Window } from "../time/window.ts";
import type { Meter } from "../usage/meter.ts";
import { GROUPINGS, type GroupBy } from "../usage/record.ts";
import { type Member, requestsFor, type UsageRequest } from "./request.ts";
import { alignRange, planWindows } from "./windows.ts";

/** A scope, and the parts of its time that have to be fetched. */
export interface PlannedScope extends Member {
  readonly groupBy: GroupBy;
  readonly stride: Stride;
  /** Any list of intervals; what lies outside the wanted range is left out. */
  readonly missing: readonly Interval[];
}

interface TaskDemand {
  /** The meter of all these scopes. */
  readonly meter: Meter;
  /** All scopes that may be loaded, of the wanted strides and every finer one. */
  readonly scopes: readonly PlannedScope[];
  readonly wanted: readonly { readonly stride: Stride; readonly range: Interval }[];
  /** Nothing before is asked for, epoch milliseconds. */
  readonly dataStart: number;
}

/**
 * The tasks that load what is wanted and missing, one request each. Those by workspace come first, since their answers
 * show which workspaces the key reads; then the newest. Scopes by workspace that miss the same time share requests. Time
 * that does not fit the wanted stride's tier is planned in the finer strides, where it may be loaded already.
 */
export function planTasks({ meter, scopes, wanted, dataStart }: TaskDemand): UsageRequest[] {
  const byKey = new Map(
    scopes.map((scope) => [`${scope.groupBy} ${scope.workspaceId} ${scope.stride}`, scope]),
  );
  const demands = new Map<string, { groupBy: GroupBy; window: Window; members: Set<PlannedScope> }>();
  for (const { stride, range } of wanted) {
    for (const scope of scopes) {
      if (scope.stride !== stride) continue;
      const { groupBy, workspaceId } = scope;
      const inStride = (finer: Stride) => byKey.get(`${groupBy} ${workspaceId} ${finer}`);
      for (const window of missingWindows(range, stride, dataStart, inStride)) {
        const key = `${groupBy} ${window.stride} ${window.start} ${window.end}`;
        const demand = demands.get(key) ?? { groupBy, window, members: new Set() };
        demands.set(key, demand);
        demand.members.add(inStride(window.stride) as PlannedScope);
      }
    }
  }
  const tasks = [...demands.values()].flatMap(({ groupBy, window, members }) =>
    requestsFor({
      meter,
      groupBy,
      window,
      members: [...members].map(({ workspaceId, scopeId }) => ({ workspaceId, scopeId })),
    }),
  );
  return tasks.sort(
    (a, b) => GROUPINGS.indexOf(a.groupBy) - GROUPINGS.indexOf(b.groupBy) || b.window.start - a.window.start,
  );
}

/** Windows over the parts of a range that are missing in their own stride. */
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
