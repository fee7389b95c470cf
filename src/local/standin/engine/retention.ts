import { type Course, DAY, HOUR } from "./course.ts";
import type { Stream } from "./organisation.ts";
import { unit } from "./random.ts";

/**
 * Which seeded traces are long-lived. A part is long-lived when it is received; a rule that somebody sets up on a day
 * upgrades another part afterwards (documented: an evaluator or a rule can). Shares, rules and times are our own.
 */
export interface Retention {
  /** Share that is long-lived when received, 0 to 1. */
  readonly received: number;
  /** Share after the rule ran: at least `received`. */
  readonly upgraded: number;
  /** Days since 1970-01-01: the rule upgrades traces of this day and later ones. */
  readonly ruleFrom: number;
  /** The rule runs so many nights after the day that follows the trace's. */
  readonly nightsLater: number;
}

/** Nothing is long-lived until somebody upgrades it. */
export const SHORT_LIVED: Retention = { received: 0, upgraded: 0, ruleFrom: 0, nightsLater: 0 };

/** The rule runs at night, for a whole UTC day at once. */
const RULE_RUNS_AT = 4 * HOUR;

/** Long-lived traces of the seeded history, which grow with the clock. */
export class LonglivedCourse {
  readonly #seed: number;
  readonly #course: Course;
  readonly #now: () => number;
  /** By stream: sums from the start to the start of each day, before and after the rule ran. */
  readonly #sums = new Map<Stream, { readonly received: number[]; readonly upgraded: number[] }>();

  constructor(seed: number, course: Course, now: () => number) {
    this.#seed = seed;
    this.#course = course;
    this.#now = now;
  }

  /** From the start to an instant: never falls, neither with the instant nor with the clock. */
  upTo(stream: Stream, at: number): number {
    const day = Math.floor(at / DAY);
    const first = this.#course.start / DAY;
    if (stream.weight === 0 || at <= this.#course.start) return 0;
    const { received, upgraded } = this.#sumsTo(stream, day);
    const ruled = Math.max(first, Math.min(day, this.#ruledUntil(stream)));
    const whole =
      (upgraded[ruled - first] ?? 0) + (received[day - first] ?? 0) - (received[ruled - first] ?? 0);
    const part = this.#course.upTo(stream, at) - this.#course.upToDay(stream, day);
    return whole + this.#ofDay(stream, day, part, day < this.#ruledUntil(stream));
  }

  /** The rule has run for every day before this one. */
  #ruledUntil({ retention }: Stream): number {
    return Math.floor((this.#now() - RULE_RUNS_AT) / DAY) - retention.nightsLater;
  }

  #sumsTo(stream: Stream, day: number) {
    const first = this.#course.start / DAY;
    const sums = this.#sums.get(stream) ?? { received: [0], upgraded: [0] };
    this.#sums.set(stream, sums);
    for (let n = sums.received.length; n <= day - first; n++) {
      const one = first + n - 1;
      const traces = this.#course.upToDay(stream, one + 1) - this.#course.upToDay(stream, one);
      sums.received.push((sums.received[n - 1] ?? 0) + this.#ofDay(stream, one, traces, false));
      sums.upgraded.push((sums.upgraded[n - 1] ?? 0) + this.#ofDay(stream, one, traces, true));
    }
    return sums;
  }

  /** Of the first `traces` of a day. One trace more is at most one long-lived more, so hours add up to the day. */
  #ofDay(stream: Stream, day: number, traces: number, isRuled: boolean): number {
    const { received, upgraded, ruleFrom } = stream.retention;
    const share = isRuled && day >= ruleFrom ? upgraded : received;
    if (share === 0) return 0;
    const luck = 0.7 + 0.6 * unit(this.#seed, stream.index + 500_009, day * 2);
    const start = unit(this.#seed, stream.index + 500_009, day * 2 + 1);
    return Math.floor(traces * Math.min(1, share * luck) + start);
  }
}
