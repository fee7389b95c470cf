import { intersect, normalize, subtract, union } from "../time/intervals.ts";
import { ceilToGrid, DAY_MS, floorToGrid, HOUR_MS } from "../time/stride.ts";
import type { Interval } from "../time/window.ts";
import { type CellTime, wholeDays } from "./cell-time.ts";

/** How the time of dimensions and workspaces is loaded, counted in months, days or hours. It equals `reporting.usage_coverage_daily`. */

/** As in the views: the first that applies. What is loaded, final and not failed is `empty` or `ok`. */
export const STATUSES = [
  ...(["not_available", "failed", "missing", "unverified", "provisional"] as const),
  ...(["empty", "ok"] as const),
];
export type Status = (typeof STATUSES)[number];

/** Without a look at the records, `empty` and `ok` are one: `final`. */
const KINDS = ["not_available", "failed", "missing", "unverified", "provisional", "final"] as const;
export type Kind = (typeof KINDS)[number];

export type GridStride = "day" | "hour";

/** What decides which time is expected. */
export interface Expectation {
  readonly stride: GridStride;
  readonly dataStart: number;
  readonly hourlyHours: number;
  /** By Postgres's clock. */
  readonly now: number;
  /** Whether the server does not answer in this stride. */
  readonly isUnavailable: boolean;
}

/** The expected time by kind, without overlaps, in whole units: days, or hours. */
export type Parts = Readonly<Record<Kind, readonly Interval[]>> & {
  readonly reconciled: readonly Interval[];
  readonly matched: readonly Interval[];
};

/** The kinds of the expected days or hours of a cell. */
export function partsOf(cell: CellTime, given: Expectation): Parts {
  const expected = expectedTime(cell, given);
  let left = expected;
  const take = (among: readonly Interval[]) => {
    const parts = intersect(left, among);
    left = subtract(left, parts);
    return parts;
  };
  return {
    not_available: given.isUnavailable ? take(subtract(left, cell.loaded)) : [],
    failed: take(cell.failed),
    unverified: take(cell.unverified),
    missing: take(subtract(left, cell.loaded)),
    final: take(cell.final),
    provisional: left,
    reconciled: intersect(cell.reconciled, expected),
    matched: intersect(cell.matched, expected),
  };
}

/** Every day from the data start to today. The hours that are kept up to date, and those that are loaded beyond. */
function expectedTime(
  { loaded }: CellTime,
  { stride, dataStart, hourlyHours, now }: Expectation,
): Interval[] {
  if (stride === "day") return normalize([{ start: dataStart, end: floorToGrid(now, DAY_MS) + DAY_MS }]);
  const end = floorToGrid(now, HOUR_MS) + HOUR_MS;
  const kept = { start: Math.max(dataStart, floorToGrid(now - hourlyHours * HOUR_MS, DAY_MS)), end };
  return union([kept], intersect(loaded, [{ start: Number.NEGATIVE_INFINITY, end }]));
}

/** Hours as days: a day has the first kind that any of its hours has. It is reconciled when all 24 are. */
export function byDay(hours: Parts): Parts {
  let taken: Interval[] = [];
  const touched = (kind: Kind) => {
    const days = hours[kind].map(({ start, end }) => ({
      start: floorToGrid(start, DAY_MS),
      end: ceilToGrid(end, DAY_MS),
    }));
    const parts = subtract(days, taken);
    taken = union(taken, parts);
    return parts;
  };
  // In this order: each takes what the ones before it left.
  const days = Object.fromEntries(KINDS.map((kind) => [kind, touched(kind)])) as Record<Kind, Interval[]>;
  return { ...days, reconciled: wholeDays(hours.reconciled), matched: wholeDays(hours.matched) };
}

/**
 * Without the day or hour under way, as long as it is not loaded: it is not late yet. Months do not count it, as in
 * `fct_usage_workspace_monthly`, and no gap holds it.
 */
export function withoutRunning(parts: Parts, stride: GridStride, now: number): Parts {
  const start = floorToGrid(now, stride === "day" ? DAY_MS : HOUR_MS);
  return { ...parts, missing: subtract(parts.missing, [{ start, end: Number.POSITIVE_INFINITY }]) };
}

/** Units of one cell in one column. */
export interface Count extends Readonly<Record<Kind, number>> {
  readonly reconciled: number;
  readonly matched: number;
}

/** Units (days or hours) of each column by kind, of all parts together. Columns are sorted and do not overlap. */
export function countsOf(all: readonly Parts[], columns: readonly Interval[], unitMs: number): Count[] {
  const counts = columns.map((): Mutable => ({ ...NONE }));
  for (const parts of all) {
    for (const name of COUNTED) addTo(counts, name, { parts: parts[name], columns, unitMs });
  }
  return counts;
}

function addTo(
  counts: readonly Mutable[],
  name: keyof Count,
  { parts, columns, unitMs }: { parts: readonly Interval[]; columns: readonly Interval[]; unitMs: number },
): void {
  let column = 0;
  for (const part of parts) {
    while ((columns[column]?.end ?? Number.POSITIVE_INFINITY) <= part.start) column++;
    for (let at = column; at < columns.length; at++) {
      const { start, end } = columns[at] as Interval;
      if (start >= part.end) break;
      (counts[at] as Mutable)[name] += (Math.min(end, part.end) - Math.max(start, part.start)) / unitMs;
    }
  }
}

const COUNTED = [...KINDS, "reconciled", "matched"] as const;
type Mutable = { -readonly [name in keyof Count]: number };
const NONE = Object.fromEntries(COUNTED.map((name) => [name, 0])) as unknown as Count;

export function sum(counts: readonly Count[]): Count {
  const all: Mutable = { ...NONE };
  for (const count of counts) for (const name of COUNTED) all[name] += count[name];
  return all;
}

/** Units that are expected in a column. */
export function unitsOf(count: Count): number {
  return KINDS.reduce((all, kind) => all + count[kind], 0);
}

/** The first kind that any unit has; undefined where nothing is expected. */
export function kindOf(count: Count): Kind | undefined {
  return KINDS.find((kind) => count[kind] > 0);
}

/** A kind as a status of the views. Final units are `ok` together where any of them has traces. */
export function statusOf(kind: Kind, hasTraces: boolean): Status {
  if (kind !== "final") return kind;
  return hasTraces ? "ok" : "empty";
}
