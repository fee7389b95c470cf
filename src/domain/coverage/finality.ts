import { intersect, subtract, union } from "../time/intervals.ts";
import { DAY_MS, floorToGrid, STRIDE_MS } from "../time/stride.ts";
import type { Interval, Window } from "../time/window.ts";

/** A part of time that one fetch loaded for a scope. Loaded intervals of a scope never overlap. */
export interface LoadedInterval extends Interval {
  readonly final: boolean;
  readonly fetchNumber: number;
  /** Epoch milliseconds, by Postgres's clock. */
  readonly fetchedAt: number;
}

/** What one fetch says about a window: its number and time, drawn together before the request. */
export interface FetchStamp {
  readonly fetchNumber: number;
  readonly fetchedAt: number;
}

/**
 * The instant up to which a fetch settles. It moves by whole UTC days, so that coverage stays in few intervals. A bucket
 * is final when it ends at or before it.
 */
export function finalUntil(fetchedAt: number, settleAfterMs: number): number {
  return floorToGrid(fetchedAt - settleAfterMs, DAY_MS);
}

/**
 * The loaded intervals of a window. What was final stays final, even where a longer `USAGE_SETTLE_AFTER` would not
 * settle it today: it was shown as final, and its changes must stay restatements.
 */
export function loadedIntervalsOf(
  window: Window,
  stamp: FetchStamp,
  { settleAfterMs, finalBefore }: { settleAfterMs: number; finalBefore: readonly Interval[] },
): LoadedInterval[] {
  const cut = floorToGrid(finalUntil(stamp.fetchedAt, settleAfterMs), STRIDE_MS[window.stride]);
  const final = intersect(union([{ start: window.start, end: cut }], finalBefore), [window]);
  const { fetchNumber, fetchedAt } = stamp;
  return [
    ...final.map((part) => ({ ...part, final: true, fetchNumber, fetchedAt })),
    ...subtract([window], final).map((part) => ({ ...part, final: false, fetchNumber, fetchedAt })),
  ];
}
