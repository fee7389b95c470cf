import type { Stride } from "./stride.ts";

/** Half-open UTC range `[start, end)` in epoch ms. */
export interface Interval {
  readonly start: number;
  readonly end: number;
}

export interface Window extends Interval {
  readonly stride: Stride;
}

export function partsOf({ start, end }: Interval, length: number): Interval[] {
  return Array.from({ length: Math.ceil((end - start) / length) }, (_, n) => ({
    start: start + n * length,
    end: Math.min(start + (n + 1) * length, end),
  }));
}
