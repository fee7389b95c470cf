import type { Stride } from "./stride.ts";

/** Half-open UTC range `[start, end)` in epoch milliseconds. */
export interface Interval {
  readonly start: number;
  readonly end: number;
}

/** A range that lies in one tier: whole buckets of `stride` on its epoch grid. */
export interface Window extends Interval {
  readonly stride: Stride;
}

/** Neighbouring parts of a range, each of this length but for the last one. */
export function partsOf({ start, end }: Interval, length: number): Interval[] {
  return Array.from({ length: Math.ceil((end - start) / length) }, (_, n) => ({
    start: start + n * length,
    end: Math.min(start + (n + 1) * length, end),
  }));
}
