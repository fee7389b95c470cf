import type { Stream } from "./organisation.ts";
import { tracesByHour, tracesOfDay } from "./rhythm.ts";

export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;

/** The seeded history of streams from a first day on, added up as far as asked. */
export class Course {
  /** Epoch ms, the start of a UTC day; nothing before it. */
  readonly start: number;
  readonly #seed: number;
  /** By stream: the sum from the start to the start of each day. */
  readonly #sums = new Map<Stream, number[]>();

  constructor(seed: number, start: number) {
    this.#seed = seed;
    this.start = start;
  }

  /** From the start to an instant (epoch ms). It never falls. */
  upTo(stream: Stream, at: number): number {
    if (stream.weight === 0 || at <= this.start) return 0;
    const day = Math.floor(at / DAY);
    const hours = (at - day * DAY) / HOUR;
    const sum = this.upToDay(stream, day);
    if (hours === 0) return sum;
    const ofDay = this.upToDay(stream, day + 1) - sum;
    return sum + tracesByHour(this.#seed, stream, day, hours, ofDay);
  }

  /** From the start to the start of a day (days since 1970-01-01). */
  upToDay(stream: Stream, day: number): number {
    if (stream.weight === 0) return 0;
    const first = this.start / DAY;
    if (day <= first) return 0;
    const sums = this.#sums.get(stream) ?? [0];
    this.#sums.set(stream, sums);
    for (let n = sums.length; n <= day - first; n++) {
      sums.push((sums[n - 1] ?? 0) + tracesOfDay(this.#seed, stream, first + n - 1));
    }
    return sums[day - first] ?? 0;
  }
}

/** A sum that never falls, from the start to an instant (epoch ms). */
export type UpTo = (stream: Stream, at: number) => number;

/** Differences of a sum between neighbouring `edges` (ascending), each at most `until`. */
export function between(upTo: UpTo, stream: Stream, edges: readonly number[], until: number): Float64Array {
  const counts = new Float64Array(Math.max(0, edges.length - 1));
  let before = upTo(stream, Math.min(edges[0] ?? 0, until));
  for (let i = 0; i < counts.length; i++) {
    const after = upTo(stream, Math.min(edges[i + 1] ?? 0, until));
    counts[i] = after - before;
    before = after;
  }
  return counts;
}
