import { intersect, subtract, union } from "../time/intervals.ts";
import { DAY_MS, floorToGrid, STRIDE_MS } from "../time/stride.ts";
import type { Interval, Window } from "../time/window.ts";

export interface LoadedInterval extends Interval {
  readonly final: boolean;
  readonly fetchNumber: number;
  /** Epoch ms, by Postgres's clock. */
  readonly fetchedAt: number;
}

/** Number and time of a fetch, drawn together before its request. */
export interface FetchToken {
  readonly fetchNumber: number;
  readonly fetchedAt: number;
}

/**
 * The instant up to which a fetch is final; a bucket is final if it ends at or before it. It moves by whole UTC days, so
 * that coverage consists of few intervals.
 */
export function finalUntil(fetchedAt: number, settleAfterMs: number): number {
  return floorToGrid(fetchedAt - settleAfterMs, DAY_MS);
}

/**
 * Returns the loaded intervals of a window. A final part stays final even if a longer `USAGE_SETTLE_AFTER` would not make it
 * final today: users saw it as final, so its changes must be restatements.
 */
export function loadedIntervalsOf(
  window: Window,
  fetchToken: FetchToken,
  { settleAfterMs, finalBefore }: { settleAfterMs: number; finalBefore: readonly Interval[] },
): LoadedInterval[] {
  const cut = floorToGrid(finalUntil(fetchToken.fetchedAt, settleAfterMs), STRIDE_MS[window.stride]);
  const final = intersect(union([{ start: window.start, end: cut }], finalBefore), [window]);
  const { fetchNumber, fetchedAt } = fetchToken;
  return [
    ...final.map((part) => ({ ...part, final: true, fetchNumber, fetchedAt })),
    ...subtract([window], final).map((part) => ({ ...part, final: false, fetchNumber, fetchedAt })),
  ];
}
