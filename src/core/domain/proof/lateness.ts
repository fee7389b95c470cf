import { DAY_MS, HOUR_MS } from "../time/stride.ts";

/** Late changes of one age class. A change is late if an earlier response was fetched after the bucket's end. */
export interface LatenessClass {
  /** Upper bound of the class, in hours after the end of the bucket. */
  readonly ageHours: number;
  readonly wasFinal: boolean;
  readonly changes: number;
  readonly tracesMoved: number;
  readonly sinceDays: number;
}

export interface Finality {
  readonly changes: number;
  readonly tracesMoved: number;
  readonly finalChanges: number;
  /** 99.9 % of the late traces arrived within this time. Null: too few changes. */
  readonly nearlyAllWithinHours: number | null;
  /** Recommended `USAGE_SETTLE_AFTER` in days. Null: too few changes. */
  readonly adviseDays: number | null;
  readonly verdict: "unknown" | "enough" | "raise" | "lower";
}

const NEARLY_ALL = 0.999;
const ENOUGH_CHANGES = 20;

export function judgeFinality(classes: readonly LatenessClass[], settleAfterMs: number): Finality {
  const sum = (of: (one: LatenessClass) => number) => sumOf(classes, of);
  const seen = {
    changes: sum((one) => one.changes),
    tracesMoved: sum((one) => one.tracesMoved),
    finalChanges: sum((one) => (one.wasFinal ? one.changes : 0)),
  };
  if (seen.changes < ENOUGH_CHANGES) {
    return { ...seen, nearlyAllWithinHours: null, adviseDays: null, verdict: "unknown" };
  }
  let moved = 0;
  let within = 0;
  for (const one of [...classes].sort((a, b) => a.ageHours - b.ageHours)) {
    if (moved >= NEARLY_ALL * seen.tracesMoved) break;
    moved += one.tracesMoved;
    within = one.ageHours;
  }
  const adviseDays = Math.max(1, Math.ceil((within * HOUR_MS) / DAY_MS));
  const settleDays = settleAfterMs / DAY_MS;
  // Twice the necessary time costs little. A longer time delays final figures without need.
  const verdict = settleDays < adviseDays ? "raise" : settleDays > 2 * adviseDays + 1 ? "lower" : "enough";
  return { ...seen, nearlyAllWithinHours: within, adviseDays, verdict };
}

export const LOOK_BACK_DAYS = 90;
/** A trace is kept for 14 days unless it is long-lived, so it cannot become long-lived later (docs/platform.md). */
const TIERS_MOVE_FOR_MS = 15 * DAY_MS;
/** Late changes must be watched this long before the latest one seen counts as the last. */
const WATCHED_DAYS = 30;

/**
 * Returns how long after its end a day's count of one retention tier becomes final, ms: the greatest age of a late change.
 * Before `WATCHED_DAYS`, and at most, this is the time in which a trace can change its tier.
 */
export function tierSettleAfterMs(classes: readonly LatenessClass[], settleAfterMs: number): number {
  const longest = Math.max(settleAfterMs, TIERS_MOVE_FOR_MS);
  if (!isTierWatched(classes)) return longest;
  const lastMs = Math.max(...classes.map(({ ageHours }) => ageHours)) * HOUR_MS;
  return Math.min(Math.max(lastMs, settleAfterMs), longest);
}

/** True if enough late changes were seen to know when the last one comes. */
export function isTierWatched(classes: readonly LatenessClass[]): boolean {
  const isLong = classes.some(({ sinceDays }) => sinceDays >= WATCHED_DAYS);
  return isLong && sumOf(classes, (one) => one.changes) >= ENOUGH_CHANGES;
}

function sumOf(classes: readonly LatenessClass[], of: (one: LatenessClass) => number): number {
  return classes.reduce((total, one) => total + of(one), 0);
}
