const strideNames = ["hour", "day", "week", "month", "year"] as const;
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
 * The length of the range decides (docs/platform.md, Contracts). Parts of days do not count, so 31 days and 23 hours are daily
 * (our guess).
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
 * Whole days, never hours (docs/platform.md, Contracts). The stride depends on the requested range, not on the widened one (our
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
  readonly edges: readonly number[];
}

/**
 * `align` has two guesses where buckets of 7, 30 and 365 days start (docs/platform.md, Buckets). Other guesses: hours and days
 * are on the UTC grid; a bucket across the end of the range keeps its length, but counts only the range.
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

/** Returns epoch ms, or undefined. Default: UTC and midnight (our guesses). */
export function instantOf(text: string): number | undefined {
  const [, date, time = "00:00", offset = "Z"] = ISO.exec(text) ?? [];
  const parsed = Date.parse(`${date}T${time}${offset}`);
  return Number.isNaN(parsed) ? undefined : parsed;
}
