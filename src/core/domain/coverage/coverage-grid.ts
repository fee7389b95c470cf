import { intersect, intersectNormal, subtract, union } from "../time/intervals.ts";
import { floorToGrid } from "../time/stride.ts";
import type { Interval } from "../time/window.ts";
import { type ColumnLength, type GridStride, unitMsOf } from "./coverage-columns.ts";

/** The statuses of the views; the first that applies counts. Time that is loaded, final and not failed is `empty` or `ok`. */
export const STATUSES = [
  ...(["not_available", "failed", "missing", "unverified", "provisional"] as const),
  ...(["empty", "ok"] as const),
];
export type Status = (typeof STATUSES)[number];

/** Only records distinguish `empty` from `ok`; without records both are `final`. */
const KINDS = ["not_available", "failed", "missing", "unverified", "provisional", "final"] as const;
export type Kind = (typeof KINDS)[number];

export interface Expectation {
  readonly stride: GridStride;
  readonly dataStart: number;
  readonly now: number;
  readonly isUnavailable: boolean;
}

/** Expected time by kind, without overlaps, in whole days or hours. Each list is in the normal form. */
export type Parts = Readonly<Record<Kind, readonly Interval[]>> & {
  readonly reconciled: readonly Interval[];
  readonly matched: readonly Interval[];
  /** Time with a figure, which may be older than a failure. */
  readonly loaded: readonly Interval[];
  readonly traced: readonly Interval[];
};

interface Cell {
  readonly days: Parts;
  readonly hours: Parts | undefined;
}

export interface CellParts<C extends Cell> {
  readonly cell: C;
  readonly parts: Parts;
}

export function cellParts<C extends Cell>(cells: readonly C[]): CellParts<C>[] {
  return cells.map((cell) => ({ cell, parts: cell.hours ?? cell.days }));
}

/**
 * Returns parts in hours if a column is an hour, else in days. A day has the status that the views show. In a month, the
 * current day does not count as missing.
 */
export function partsFor<C extends Cell>(
  cells: readonly C[],
  length: ColumnLength,
  now: number,
): CellParts<C>[] {
  if (length === "hour") return cellParts(cells);
  return cells.map((cell) => ({
    cell,
    parts: length === "month" ? withoutRunning(cell.days, "day", now) : cell.days,
  }));
}

export interface ColumnState {
  readonly count: Count;
  /** Undefined where nothing is expected. */
  readonly status: Status | undefined;
  /** Units that are final and proved: equal to the export, or part of a total that equals them. */
  readonly proved: number;
}

export function columnStates(
  all: readonly Parts[],
  columns: readonly Interval[],
  unitMs: number,
): ColumnState[] {
  const traced = unitsIn(
    all.map((one) => intersectNormal(one.traced, one.final)),
    columns,
    unitMs,
  );
  const proved = unitsIn(
    all.map((one) => intersectNormal(union(one.reconciled, one.matched), one.final)),
    columns,
    unitMs,
  );
  return countsOf(all, columns, unitMs).map((count, n) => {
    const kind = kindOf(count);
    return { count, status: kind && statusOf(kind, (traced[n] ?? 0) > 0), proved: proved[n] ?? 0 };
  });
}

/** Removes the current day or hour from missing time, because it is not late yet, as in `fct_usage_monthly`. */
export function withoutRunning(parts: Parts, stride: GridStride, now: number): Parts {
  const start = floorToGrid(now, unitMsOf(stride));
  return { ...parts, missing: subtract(parts.missing, [{ start, end: Number.POSITIVE_INFINITY }]) };
}

export interface Count extends Readonly<Record<Kind, number>> {
  readonly reconciled: number;
  readonly matched: number;
}

function countsOf(all: readonly Parts[], columns: readonly Interval[], unitMs: number): Count[] {
  const counts = columns.map((): Mutable => ({ ...NONE }));
  for (const name of COUNTED) {
    for (const [n, units] of unitsIn(
      all.map((one) => one[name]),
      columns,
      unitMs,
    ).entries())
      (counts[n] as Mutable)[name] = units;
  }
  return counts;
}

/** Visits only where intervals begin and end, because the workspaces of a large customer have over a million days a year. */
function unitsIn(
  all: readonly (readonly Interval[])[],
  columns: readonly Interval[],
  unitMs: number,
): number[] {
  const first = columns[0]?.start ?? 0;
  const length = ((columns.at(-1)?.end ?? first) - first) / unitMs;
  const place = (at: number) => Math.min(Math.max((at - first) / unitMs, 0), length);
  const changes: number[] = Array(length + 1).fill(0);
  const change = (at: number, by: number) => {
    changes[place(at)] = (changes[place(at)] ?? 0) + by;
  };
  for (const parts of all) {
    for (const { start, end } of parts) {
      change(start, 1);
      change(end, -1);
    }
  }
  const before = [0];
  for (let n = 0, holding = 0; n < length; n++) {
    holding += changes[n] as number;
    before.push((before[n] as number) + holding);
  }
  return columns.map(({ start, end }) => (before[place(end)] as number) - (before[place(start)] as number));
}

export const COUNTED = [...KINDS, "reconciled", "matched"] as const;
type Mutable = { -readonly [name in keyof Count]: number };
const NONE = Object.fromEntries(COUNTED.map((name) => [name, 0])) as unknown as Count;

export function isUnproved({ count, status, proved }: ColumnState): boolean {
  return (status === "ok" || status === "empty") && proved < count.final;
}

export function unitsOf(count: Count): number {
  return KINDS.reduce((all, kind) => all + count[kind], 0);
}

/** The first kind that any unit has; undefined where nothing is expected. */
export function kindOf(count: Count): Kind | undefined {
  return KINDS.find((kind) => count[kind] > 0);
}

export function statusOf(kind: Kind, hasTraces: boolean): Status {
  if (kind !== "final") return kind;
  return hasTraces ? "ok" : "empty";
}

function gapTime({ failed, missing, unverified }: Parts): Interval[] {
  return union(union(failed, missing), unverified);
}

export function hasGapIn(parts: Parts, range: Interval): boolean {
  return intersect(gapTime(parts), [range]).length > 0;
}
