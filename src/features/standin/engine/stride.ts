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
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
}

/**
 * The length of the range decides (docs/platform.md, Contracts). Part days do not count, so 31 days and 23 hours are daily (our
 * guess).
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
 * Never hourly, and whole days (docs/platform.md, Contracts). The stride follows the range as asked, not as widened (our
 * guess).
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
  /** Within the range: one more than there are buckets. */
  readonly edges: readonly number[];
}

/**
 * Both guesses where 7, 30 and 365 days start can be chosen (docs/platform.md, Buckets). Our guesses: hours and days lie on the
 * UTC grid; a bucket beyond the range keeps its length, but counts only the range.
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

/** Always both fields, the unused one 0 (our guess). */
export function toWireStride(stride: StrideName): { days: number; hours: number } {
  return stride === "hour" ? { days: 0, hours: 1 } : { days: LENGTH[stride] / DAY, hours: 0 };
}

const ISO = /^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d:\d\d)?)?$/i;

/** Epoch ms, or undefined. UTC without an offset, midnight without a time (our guesses). */
export function instantOf(text: string): number | undefined {
  const [, date, time = "00:00", offset = "Z"] = ISO.exec(text) ?? [];
  const parsed = Date.parse(`${date}T${time}${offset}`);
  return Number.isNaN(parsed) ? undefined : parsed;
}
