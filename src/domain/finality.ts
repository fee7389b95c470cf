import { DAY_MS, HOUR_MS } from "./time/stride.ts";

/** Late changes of one class of ages: what changed although the answer before came after the bucket's end. */
export interface LatenessClass {
  /** Upper end of the class, in hours since the end of the bucket. */
  readonly ageHours: number;
  readonly wasSettled: boolean;
  readonly changes: number;
  /** Sum of the differences without their signs. */
  readonly tracesMoved: number;
}

export interface Finality {
  readonly changes: number;
  readonly tracesMoved: number;
  /** Of these, changes of counts that were settled. */
  readonly settledChanges: number;
  /** By then 99.9 % of the late traces had come; null where too few came to say. */
  readonly nearlyAllWithinHours: number | null;
  /** What `USAGE_SETTLE_AFTER` should be, in days; null where too few changes were seen. */
  readonly adviseDays: number | null;
  readonly verdict: "unknown" | "enough" | "raise" | "lower";
}

const NEARLY_ALL = 0.999;
/** Fewer changes than this are an anecdote. */
const ENOUGH_CHANGES = 20;

/** What the ages of late changes say about when counts are final. */
export function judgeFinality(classes: readonly LatenessClass[], settleAfterMs: number): Finality {
  const sum = (of: (one: LatenessClass) => number) => classes.reduce((total, one) => total + of(one), 0);
  const seen = {
    changes: sum((one) => one.changes),
    tracesMoved: sum((one) => one.tracesMoved),
    settledChanges: sum((one) => (one.wasSettled ? one.changes : 0)),
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
  // Waiting twice as long as it takes is cheap; more than that keeps final figures from people who wait for them.
  const verdict = settleDays < adviseDays ? "raise" : settleDays > 2 * adviseDays + 1 ? "lower" : "enough";
  return { ...seen, nearlyAllWithinHours: within, adviseDays, verdict };
}
