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
