import type { Rhythm, Stream } from "./organisation.ts";
import { unit } from "./random.ts";

export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;

export class Trend {
  /** Start of a UTC day. */
  readonly start: number;
  readonly #seed: number;
  readonly #sums = new Map<Stream, number[]>();

  constructor(seed: number, start: number) {
    this.#seed = seed;
    this.start = start;
  }

  upTo(stream: Stream, at: number): number {
    if (stream.weight === 0 || at <= this.start) return 0;
    const day = Math.floor(at / DAY);
    const hours = (at - day * DAY) / HOUR;
    const sum = this.upToDay(stream, day);
    if (hours === 0) return sum;
    const ofDay = this.upToDay(stream, day + 1) - sum;
    return sum + tracesByHour(this.#seed, stream, day, hours, ofDay);
  }

  /** Sum up to the start of a day (days since 1970-01-01). */
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

/** Traces depend only on seed, stream and time. Hours are parts of their day's number, so hours and days agree. */
const WEEKDAY_OFFICE = [0.15, 1, 1.05, 1.1, 1.05, 0.9, 0.2] as const; // Sunday first
const GROWTH_A_MONTH = 0.04;
const GROWTH_FROM = Date.parse("2026-01-05") / 86_400_000;

/** `day`: days since 1970-01-01. */
function tracesOfDay(seed: number, stream: Stream, day: number): number {
  if (stream.weight === 0 || day < stream.begins || day >= stream.ends) return 0;
  const weekday = (day + 4) % 7; // 1970-01-01 was a Thursday
  const busy = stream.rhythm === "steady" || stream.rhythm === "nightly" ? 1 : (WEEKDAY_OFFICE[weekday] ?? 1);
  const growth = Math.max(0.3, 1 + (GROWTH_A_MONTH * (day - GROWTH_FROM)) / 30);
  const luck = 0.6 + 0.8 * unit(seed, stream.index, day * 4);
  return Math.floor(stream.weight * busy * growth * luck + unit(seed, stream.index, day * 4 + 1));
}

/** Traces within `hours` (0 to 24, with fractions) after midnight UTC. Never falls, and is `ofDay` at 24. */
function tracesByHour(seed: number, stream: Stream, day: number, hours: number, ofDay: number): number {
  if (ofDay === 0) return 0;
  const shares = SHARES[stream.rhythm];
  const whole = Math.floor(hours);
  const from = shares[whole] ?? 1;
  const share = from + ((shares[whole + 1] ?? 1) - from) * (hours - whole);
  // Varies the curve of the day. Flat parts (night) stay flat.
  const bend = unit(seed, stream.index, day * 4 + 2) - 0.5;
  const bent = share + bend * share * (1 - share);
  return Math.min(ofDay, Math.floor(ofDay * bent + unit(seed, stream.index, day * 4 + 3)));
}

const SHARES: Record<Rhythm, Float64Array> = {
  office: cumulated((h) => (h < 6 || h >= 20 ? 0 : 1 + 4 * Math.sin(((h - 6) / 14) * Math.PI))),
  evening: cumulated((h) => (h < 12 ? 0 : 1 + 3 * Math.sin(((h - 12) / 12) * Math.PI))),
  nightly: cumulated((h) => (h === 2 || h === 3 ? 1 : 0)),
  steady: cumulated(() => 1),
};

function cumulated(weight: (hour: number) => number): Float64Array {
  const sums = new Float64Array(25);
  for (let h = 0; h < 24; h++) sums[h + 1] = (sums[h] ?? 0) + weight(h);
  const whole = sums[24] ?? 1;
  return sums.map((sum) => sum / whole);
}

/** The rule runs at night, for a whole UTC day. */
const RULE_RUNS_AT = 4 * HOUR;

export class LonglivedTrend {
  readonly #seed: number;
  readonly #trend: Trend;
  readonly #now: () => number;
  readonly #sums = new Map<Stream, { readonly received: number[]; readonly upgraded: number[] }>();

  constructor(seed: number, trend: Trend, now: () => number) {
    this.#seed = seed;
    this.#trend = trend;
    this.#now = now;
  }

  /** Never falls, whether the instant or the clock moves. */
  upTo(stream: Stream, at: number): number {
    const day = Math.floor(at / DAY);
    const first = this.#trend.start / DAY;
    if (stream.weight === 0 || at <= this.#trend.start) return 0;
    const { received, upgraded } = this.#sumsTo(stream, day);
    const ruled = Math.max(first, Math.min(day, this.#ruledUntil(stream)));
    const whole =
      (upgraded[ruled - first] ?? 0) + (received[day - first] ?? 0) - (received[ruled - first] ?? 0);
    const part = this.#trend.upTo(stream, at) - this.#trend.upToDay(stream, day);
    return whole + this.#ofDay(stream, day, part, day < this.#ruledUntil(stream));
  }

  #ruledUntil({ retention }: Stream): number {
    return Math.floor((this.#now() - RULE_RUNS_AT) / DAY) - retention.nightsLater;
  }

  #sumsTo(stream: Stream, day: number) {
    const first = this.#trend.start / DAY;
    const sums = this.#sums.get(stream) ?? { received: [0], upgraded: [0] };
    this.#sums.set(stream, sums);
    for (let n = sums.received.length; n <= day - first; n++) {
      const one = first + n - 1;
      const traces = this.#trend.upToDay(stream, one + 1) - this.#trend.upToDay(stream, one);
      sums.received.push((sums.received[n - 1] ?? 0) + this.#ofDay(stream, one, traces, false));
      sums.upgraded.push((sums.upgraded[n - 1] ?? 0) + this.#ofDay(stream, one, traces, true));
    }
    return sums;
  }

  /** One more trace gives at most one more long-lived trace, so hours add up to the day. */
  #ofDay(stream: Stream, day: number, traces: number, isRuled: boolean): number {
    const { received, upgraded, ruleFrom } = stream.retention;
    const share = isRuled && day >= ruleFrom ? upgraded : received;
    if (share === 0) return 0;
    const luck = 0.7 + 0.6 * unit(this.#seed, stream.index + 500_009, day * 2);
    const start = unit(this.#seed, stream.index + 500_009, day * 2 + 1);
    return Math.floor(traces * Math.min(1, share * luck) + start);
  }
}
