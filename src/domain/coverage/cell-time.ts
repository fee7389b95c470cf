import { intersect, normalize, subtract, union } from "../time/intervals.ts";
import { ceilToGrid, DAY_MS, floorToGrid } from "../time/stride.ts";
import type { Interval } from "../time/window.ts";

/** What is stored about the time of one scope, as lists in any order, epoch milliseconds. */
export interface StoredTime {
  readonly final: readonly Interval[];
  readonly provisional: readonly Interval[];
  readonly failed: readonly Interval[];
  readonly unverified: readonly Interval[];
  /** Compared with a whole export, and without a restatement since. */
  readonly compared: readonly Interval[];
  /** Of totals that equalled the stored days. */
  readonly totalled: readonly Interval[];
  /** With a difference left, from the export or from a total. */
  readonly differing: readonly Interval[];
}

/** Time of one dimension and workspace in one stride. Days begin and end on UTC days. */
export interface CellTime {
  readonly loaded: readonly Interval[];
  readonly final: readonly Interval[];
  readonly failed: readonly Interval[];
  readonly unverified: readonly Interval[];
  /** Final, compared with a whole export, and without a difference. */
  readonly reconciled: readonly Interval[];
  /** Final, part of a total that equals the stored days, and without a difference. None for hours. */
  readonly matched: readonly Interval[];
  /** Days whose figure is the sum of their hours: they are loaded, and never reconciled. */
  readonly daysOfHours: readonly Interval[];
}

/** The time of a scope from its own loads, as the views count it. */
export function cellTime(stored: StoredTime): CellTime {
  // First merged, so that what follows looks at few intervals.
  const [final, differing] = [normalize(stored.final), normalize(stored.differing)];
  const { failed, unverified } = stored;
  const proved = (parts: readonly Interval[]) => subtract(intersect(parts, final), differing);
  return {
    loaded: union(final, stored.provisional),
    final,
    failed: normalize(failed),
    unverified: normalize(unverified),
    reconciled: proved(stored.compared),
    matched: proved(stored.totalled),
    daysOfHours: [],
  };
}

/** Days that hours may stand in for: neither loaded nor unverified. */
export function daysLeft({ loaded, unverified }: CellTime, within: Interval): Interval[] {
  return subtract([within], union(loaded, unverified));
}

/** The same with the days among `left` whose 24 hours are all loaded. */
export function withHours(
  days: CellTime,
  { left, final, provisional }: Pick<StoredTime, "final" | "provisional"> & { left: readonly Interval[] },
): CellTime {
  const daysOfHours = intersect(wholeDays(union(final, provisional)), left);
  return {
    ...days,
    daysOfHours,
    loaded: union(days.loaded, daysOfHours),
    final: union(days.final, intersect(wholeDays(final), daysOfHours)),
  };
}

/** UTC days that lie wholly within the parts. */
export function wholeDays(parts: readonly Interval[]): Interval[] {
  return normalize(
    normalize(parts).map(({ start, end }) => ({
      start: ceilToGrid(start, DAY_MS),
      end: floorToGrid(end, DAY_MS),
    })),
  );
}
