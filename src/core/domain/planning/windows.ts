import { intersect, subtract } from "../time/intervals.ts";
import {
  ceilToGrid,
  DAY_MS,
  finerStride,
  floorToGrid,
  HOUR_MS,
  STRIDE_MS,
  type Stride,
  TIER_BUCKETS,
} from "../time/stride.ts";
import type { Interval, Window } from "../time/window.ts";

/**
 * Widens a range outwards to the grid on which a plan for `stride` can be cut: the hour for `hour`, the UTC day for every
 * other. Leaves out time before `notBefore` (epoch ms, floored to its UTC day). Undefined if no time remains.
 */
export function alignRange(range: Interval, stride: Stride, notBefore?: number): Interval | undefined {
  if (range.start >= range.end) return undefined;
  const grid = stride === "hour" ? HOUR_MS : DAY_MS;
  const floor = notBefore === undefined ? Number.NEGATIVE_INFINITY : floorToGrid(notBefore, DAY_MS);
  const start = Math.max(floorToGrid(range.start, grid), floor);
  const end = ceilToGrid(range.end, grid);
  return start < end ? { start, end } : undefined;
}

/**
 * Tiles a range from `alignRange` exactly, in order of time. Prefers least time not at `stride`, then least time not at the
 * next finer stride, then fewest windows, then earliest cuts. Taking all that each stride can hold, coarsest first, reaches
 * that optimum: a stride covers either all whole buckets of a gap or none. No stride coarser than `stride` is used. Throws
 * RangeError if an end is off the hour or `end` is before `start`.
 */
export function planWindows(range: Interval, stride: Stride): Window[] {
  const { start, end } = range;
  const onHour = Number.isInteger(start / HOUR_MS) && Number.isInteger(end / HOUR_MS);
  if (!onHour || end < start) {
    throw new RangeError(`No plan tiles [${start}, ${end}): align the range to the hour first (alignRange)`);
  }
  const whole = windowsInside(range, stride);
  // This is the usual case: a plan of years with many holes calls this function for each hole.
  if (whole[0]?.start === start && whole.at(-1)?.end === end) return whole;
  let windows: Window[] = [];
  let gaps: Interval[] = [range];
  for (let at: Stride | undefined = stride; at !== undefined; at = finerStride(at)) {
    const level: Stride = at;
    const found = gaps.flatMap((gap) => windowsInside(gap, level));
    windows = windows.concat(found);
    gaps = subtract(gaps, found);
  }
  return windows.sort((a, b) => a.start - b.start);
}

/**
 * Returns all whole buckets of `stride` in a gap, in the fewest windows of its tier, cut as early as the tier allows. Empty if
 * the tier needs more buckets. `2 * min <= max + 1` holds in every tier, so each of the fewest windows can have `min` buckets.
 */
function windowsInside(gap: Interval, stride: Stride): Window[] {
  const size = STRIDE_MS[stride];
  const first = ceilToGrid(gap.start, size);
  const buckets = (floorToGrid(gap.end, size) - first) / size;
  const { min } = TIER_BUCKETS[stride];
  if (buckets < min) return [];
  const max = Math.min(TIER_BUCKETS[stride].max, buckets);
  const count = Math.ceil(buckets / max);
  // The earliest cut after which the later windows can hold the rest, and before which the earlier ones have `min` buckets
  // each.
  const cut = (i: number) => first + size * Math.max(min * i, buckets - (count - i) * max);
  return Array.from({ length: count }, (_, i) => ({ start: cut(i), end: cut(i + 1), stride }));
}

const CONTROL_STRIDES: readonly Stride[] = ["year", "month", "week"];

export const REACHES = ["month", "quarter", "all"] as const;
export type Reach = (typeof REACHES)[number];

export function rangeOfReach(reach: Reach, final: Interval): Interval {
  const last = new Date(final.end - DAY_MS);
  const from = {
    month: Date.UTC(last.getUTCFullYear(), last.getUTCMonth(), 1),
    quarter: final.end - 92 * DAY_MS,
    all: final.start,
  }[reach];
  return { start: Math.max(from, final.start), end: final.end };
}

/**
 * Windows of whole weeks, months and years whose totals prove the days of a range in few requests: the coarsest that
 * fit, then weeks for the other days, which may overlap their neighbors. No window extends beyond `final`. Days
 * outside of whole weeks are checked later; days before the first whole week are never checked.
 */
export function controlWindows(range: Interval, final: Interval): Window[] {
  const windows = planWindows(range, "year").filter((window) => CONTROL_STRIDES.includes(window.stride));
  for (const rest of subtract([range], windows)) windows.push(...weeksOver(rest, final));
  return windows.sort((a, b) => a.start - b.start);
}

function weeksOver(rest: Interval, final: Interval): Window[] {
  const { week } = STRIDE_MS;
  const least = TIER_BUCKETS.week.min * week;
  const bounds = { start: ceilToGrid(final.start, week), end: floorToGrid(final.end, week) };
  const end = Math.min(ceilToGrid(rest.end, week), bounds.end);
  const start = Math.max(Math.min(floorToGrid(rest.start, week), end - least), bounds.start);
  const window = { start, end: Math.min(Math.max(end, start + least), bounds.end), stride: "week" as const };
  const speaks = window.end - window.start >= least && intersect([window], [rest]).length > 0;
  return speaks ? [window] : [];
}
