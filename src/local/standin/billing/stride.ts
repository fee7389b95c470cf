export const strideNames = ["hour", "day", "week", "month", "year"] as const;
export type StrideName = (typeof strideNames)[number];

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

export const LENGTH: Record<StrideName, number> = {
  hour: HOUR,
  day: DAY,
  week: 7 * DAY,
  month: 30 * DAY,
  year: 365 * DAY,
};

export interface Range {
  /** Epoch ms. */
  readonly start: number;
  /** Epoch ms, exclusive. */
  readonly end: number;
}

/**
 * The length of the range decides the stride (docs/platform.md, Contracts). Our guess: part days do not count, so 31 days
 * and 23 hours are still daily.
 */
export function strideOf({ start, end }: Range): StrideName {
  const days = Math.floor((end - start) / DAY);
  if (days < 1) return "hour";
  if (days <= 31) return "day";
  if (days <= 93) return "week";
  if (days <= 366) return "month";
  return "year";
}

/**
 * The day-granular contract is never hourly and answers every day that the range touches whole (docs/platform.md,
 * Contracts). Our guess: the stride follows the range as asked, not as widened.
 */
export function dayGranular(range: Range): { range: Range; stride: StrideName } {
  const stride = strideOf(range);
  return {
    range: { start: Math.floor(range.start / DAY) * DAY, end: Math.ceil(range.end / DAY) * DAY },
    stride: stride === "hour" ? "day" : stride,
  };
}

interface Buckets {
  readonly buckets: readonly Range[];
  /** Where counting starts and stops, within the range: one more than there are buckets. */
  readonly edges: readonly number[];
}

/**
 * Cuts the range. Where 7, 30 and 365 days start is not known (docs/platform.md, Buckets), so both guesses can be chosen.
 * Hours and days lie on the UTC grid (our guess). A bucket that reaches out of the range keeps its full length, but counts
 * only what lies in the range (our guess).
 */
export function cut(range: Range, stride: StrideName, align: "window" | "epoch"): Buckets {
  const length = LENGTH[stride];
  const gridded = align === "epoch" || stride === "hour" || stride === "day";
  const buckets: Range[] = [];
  const edges = [range.start];
  for (
    let start = gridded ? Math.floor(range.start / length) * length : range.start;
    start < range.end;
    start += length
  ) {
    buckets.push({ start, end: start + length });
    edges.push(Math.min(start + length, range.end));
  }
  return { buckets, edges };
}

/** Both fields every time, the unused one 0 (our guess). */
export function toWireStride(stride: StrideName): { days: number; hours: number } {
  return stride === "hour" ? { days: 0, hours: 1 } : { days: LENGTH[stride] / DAY, hours: 0 };
}

/** A calendar date, with a time or without. */
const ISO = /^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d:\d\d)?)?$/i;

/** ISO 8601 to epoch ms; undefined if it is none. UTC without an offset, midnight without a time (our guesses). */
export function instantOf(text: string): number | undefined {
  const [, date, time = "00:00", offset = "Z"] = ISO.exec(text) ?? [];
  const parsed = Date.parse(`${date}T${time}${offset}`);
  return Number.isNaN(parsed) ? undefined : parsed;
}
