/** A month is 30 days and a year 365 (docs/platform.md, Contracts). */

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

export const STRIDES = ["hour", "day", "week", "month", "year"] as const;
export type Stride = (typeof STRIDES)[number];

export const STRIDE_MS: Readonly<Record<Stride, number>> = {
  hour: HOUR_MS,
  day: DAY_MS,
  week: 7 * DAY_MS,
  month: 30 * DAY_MS,
  year: 365 * DAY_MS,
};

/**
 * How many whole buckets a window may hold so that the platform responds in this stride. docs/platform.md gives range
 * lengths (under 1 day, 1 to 31, 32 to 93, 94 to 366 days, more); these are the whole buckets inside them.
 */
export const TIER_BUCKETS: Readonly<Record<Stride, { readonly min: number; readonly max: number }>> = {
  hour: { min: 1, max: 23 },
  day: { min: 1, max: 31 },
  week: { min: 5, max: 13 },
  month: { min: 4, max: 12 },
  year: { min: 2, max: Number.POSITIVE_INFINITY },
};

export function finerStride(stride: Stride): Stride | undefined {
  return STRIDES[STRIDES.indexOf(stride) - 1];
}

/** The stride of the platform's response for a range of this length in ms (docs/platform.md). */
export function strideOfRange(rangeMs: number): Stride {
  const days = Math.floor(rangeMs / DAY_MS);
  if (days < 1) return "hour";
  if (days <= 31) return "day";
  if (days <= 93) return "week";
  if (days <= 366) return "month";
  return "year";
}

export function floorToGrid(instant: number, gridMs: number): number {
  return Math.floor(instant / gridMs) * gridMs;
}

export function ceilToGrid(instant: number, gridMs: number): number {
  return Math.ceil(instant / gridMs) * gridMs;
}
