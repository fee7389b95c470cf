import { DAY_MS, floorToGrid, HOUR_MS } from "../time/stride.ts";
import type { Interval } from "../time/window.ts";

export type GridStride = "day" | "hour";

/** A grid has at most 48 columns, so that a page stays small. */

export type ColumnLength = "month" | "day" | "hour";

const MOST: Readonly<Record<ColumnLength, number>> = { month: 13, day: 31, hour: 48 };

export interface Columns {
  readonly length: ColumnLength;
  readonly columns: readonly Interval[];
}

/**
 * Returns months for more than 31 days, hours for up to two days if hours are shown, else days. Drops months before the last
 * 13.
 */
export function columnsOf(range: Interval, stride: GridStride): Columns {
  const days = (range.end - range.start) / DAY_MS;
  if (days > MOST.day) return { length: "month", columns: monthsOf(range).slice(-MOST.month) };
  const length = stride === "hour" && days <= 2 ? "hour" : "day";
  return { length, columns: unitsOfRange(range, unitMsOf(length)) };
}

export function unitMsOf(length: ColumnLength): number {
  return length === "hour" ? HOUR_MS : DAY_MS;
}

export function unitsOfRange({ start, end }: Interval, unitMs: number): Interval[] {
  const first = floorToGrid(start, unitMs);
  return Array.from({ length: Math.ceil((end - first) / unitMs) }, (_, n) => ({
    start: first + n * unitMs,
    end: first + (n + 1) * unitMs,
  }));
}

export function lastMonths(now: number): Interval {
  return { start: monthAt(now, 1 - MOST.month), end: monthAt(now, 1) };
}

export function monthsOf({ start, end }: Interval): Interval[] {
  const months: Interval[] = [];
  for (let at = monthAt(start, 0); at < end; at = monthAt(at, 1)) {
    months.push({ start: at, end: monthAt(at, 1) });
  }
  return months;
}

function monthAt(at: number, months: number): number {
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months);
}
