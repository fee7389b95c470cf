import { intersect, subtract } from "../time/intervals.ts";
import { ceilToGrid, DAY_MS, floorToGrid, STRIDE_MS, type Stride, TIER_BUCKETS } from "../time/stride.ts";
import type { Interval, Window } from "../time/window.ts";
import { planWindows } from "./windows.ts";

/** The strides whose windows prove the days: their totals must be the days' sums. Coarsest first. */
const CONTROL_STRIDES: readonly Stride[] = ["year", "month", "week"];

/** How far back a check reaches: the calendar month under way, the last three months, or everything. */
export const REACHES = ["month", "quarter", "all"] as const;
export type Reach = (typeof REACHES)[number];

/** The final days that a check of this reach is about. */
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
 * Windows of whole weeks, months and years whose totals prove the days of a range, in few requests: the coarsest that
 * fit, then windows of weeks for the days that are left, reaching over their neighbours. No window extends
 * beyond `final`. Days outside of whole weeks are checked later, or never before the first whole week.
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
