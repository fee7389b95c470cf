import { intersect, union } from "../time/intervals.ts";
import type { Interval } from "../time/window.ts";
import type { Parts } from "./coverage-grid.ts";

/** A stretch of time in which at least one of the cells is missing, failed or unverified. */
export interface Gap<Cell> extends Interval {
  /** The cells that have a gap in it. */
  readonly cells: readonly Cell[];
}

/** What a backfill would load: time that is not loaded, or whose last answer could not be used. */
export function gapTime({ failed, missing, unverified }: Parts): Interval[] {
  return union(union(failed, missing), unverified);
}

/** The gaps of some cells, earliest first. */
export function gapsOf<Cell extends { readonly parts: Parts }>(cells: readonly Cell[]): Interval[] {
  return union(
    cells.flatMap(({ parts }) => gapTime(parts)),
    [],
  );
}

/** A gap with the cells that have it. */
export function withCells<Cell extends { readonly parts: Parts }>(
  gap: Interval,
  cells: readonly Cell[],
): Gap<Cell> {
  return { ...gap, cells: cells.filter(({ parts }) => intersect(gapTime(parts), [gap]).length > 0) };
}
