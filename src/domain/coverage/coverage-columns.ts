import { DAY_MS, floorToGrid, HOUR_MS } from "../time/stride.ts";
import type { Interval } from "../time/window.ts";

/** The strides in which time is loaded that a grid shows. */
export type GridStride = "day" | "hour";

/** Which columns a grid has: never more than 48, so that a page stays small. */

export type ColumnLength = "month" | "day" | "hour";

const MOST: Readonly<Record<ColumnLength, number>> = { month: 13, day: 31, hour: 48 };

export interface Columns {
  readonly length: ColumnLength;
  /** Whole months, days or hours, oldest first. */
  readonly columns: readonly Interval[];
}

/** Months of more than 31 days, hours of up to two days if hours are shown, else days. Of a longer range, its end. */
export function columnsOf(range: Interval, stride: GridStride): Columns {
  const days = (range.end - range.start) / DAY_MS;
  if (days > MOST.day) return { length: "month", columns: monthsOf(range).slice(-MOST.month) };
  const length = stride === "hour" && days <= 2 ? "hour" : "day";
  return { length, columns: unitsOfRange(range, unitMsOf(length)) };
}

/** What columns are counted in: hours where a column is an hour, else days. */
export function unitMsOf(length: ColumnLength): number {
  return length === "hour" ? HOUR_MS : DAY_MS;
}

/** The whole days or hours that a range touches. */
export function unitsOfRange({ start, end }: Interval, unitMs: number): Interval[] {
  const first = floorToGrid(start, unitMs);
  return Array.from({ length: Math.ceil((end - first) / unitMs) }, (_, n) => ({
    start: first + n * unitMs,
    end: first + (n + 1) * unitMs,
  }));
}

/** The last 13 months, the one under way among them. */
export function lastMonths(now: number): Interval {
  return { start: monthAt(now, 1 - MOST.month), end: monthAt(now, 1) };
}

/** The calendar months (UTC) that a range touches. */
export function monthsOf({ start, end }: Interval): Interval[] {
  const months: Interval[] = [];
  for (let at = monthAt(start, 0); at < end; at = monthAt(at, 1)) {
    months.push({ start: at, end: monthAt(at, 1) });
  }
  return months;
}

/** The beginning of the month of an instant, or of one before or after it. */
function monthAt(at: number, months: number): number {
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months);
}

/** The range of the same length before (-1) or after (1) a range; of whole months, as many months. */
export function neighbour({ start, end }: Interval, way: -1 | 1): Interval {
  const months = monthsOf({ start, end });
  const isWhole = months[0]?.start === start && months.at(-1)?.end === end;
  const at = way === 1 ? end : start;
  const other = isWhole ? monthAt(at, way * months.length) : at + way * (end - start);
  return way === 1 ? { start: at, end: other } : { start: other, end: at };
}
