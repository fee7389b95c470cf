import { intersect, union } from "../time/intervals.ts";
import type { Interval } from "../time/window.ts";
import type { Parts } from "./coverage-grid.ts";

/** Time that is missing, failed or unverified: what somebody who looks for gaps wants to find. */
function gapTime({ failed, missing, unverified }: Parts): Interval[] {
  return union(union(failed, missing), unverified);
}

export function hasGapIn(parts: Parts, range: Interval): boolean {
  return intersect(gapTime(parts), [range]).length > 0;
}

/** Stretches of time in which at least one of the cells has a gap, earliest first. */
export function gapsOf(cells: readonly { readonly parts: Parts }[]): Interval[] {
  return union(
    cells.flatMap(({ parts }) => gapTime(parts)),
    [],
  );
}

/** The cells that have a gap in a stretch of time. */
export function cellsIn<Cell extends { readonly parts: Parts }>(
  gap: Interval,
  cells: readonly Cell[],
): Cell[] {
  return cells.filter(({ parts }) => hasGapIn(parts, gap));
}
