import type { Interval } from "./window.ts";

/**
 * Sets of instants as lists of half-open intervals. Every function takes any list (unsorted, overlapping) and returns
 * the normal form: sorted, disjoint, not touching, none empty.
 */

export const ALL_TIME: Interval = { start: -Infinity, end: Infinity };

/** Converts to the normal form. Intervals that hold no instant (`start >= end`) vanish. */
export function normalize(intervals: readonly Interval[]): Interval[] {
  const sorted = intervals.filter(({ start, end }) => start < end).sort((a, b) => a.start - b.start);
  const merged: Interval[] = [];
  for (const { start, end } of sorted) {
    const last = merged.at(-1);
    if (last === undefined || last.end < start) merged.push({ start, end });
    else if (last.end < end) merged[merged.length - 1] = { start: last.start, end };
  }
  return merged;
}

export function union(a: readonly Interval[], b: readonly Interval[]): Interval[] {
  return normalize([...a, ...b]);
}

export function subtract(a: readonly Interval[], b: readonly Interval[]): Interval[] {
  const holes = normalize(b);
  const starts = [Number.NEGATIVE_INFINITY, ...holes.map((hole) => hole.end)];
  const outside = starts.map((start, i) => ({ start, end: holes[i]?.start ?? Number.POSITIVE_INFINITY }));
  return intersect(a, outside);
}

export function intersect(a: readonly Interval[], b: readonly Interval[]): Interval[] {
  return intersectNormal(normalize(a), normalize(b));
}

export function intersectNormal(left: readonly Interval[], right: readonly Interval[]): Interval[] {
  const shared: Interval[] = [];
  for (let i = 0, j = 0; ; ) {
    const x = left[i];
    const y = right[j];
    if (x === undefined || y === undefined) return shared;
    const start = Math.max(x.start, y.start);
    const end = Math.min(x.end, y.end);
    if (start < end) shared.push({ start, end });
    // The interval that ends first meets no later interval of the other list.
    if (x.end < y.end) i++;
    else j++;
  }
}

export function totalMs(a: readonly Interval[]): number {
  return normalize(a).reduce((sum, { start, end }) => sum + (end - start), 0);
}

/** Returns the interval from the first instant of a set to its last. An empty set gives an empty interval at 0. */
export function spanOf(a: readonly Interval[]): Interval {
  const all = normalize(a);
  return { start: all[0]?.start ?? 0, end: all.at(-1)?.end ?? 0 };
}
