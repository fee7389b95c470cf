import { addDays } from "../time/days.ts";
import { DAY_MS } from "../time/stride.ts";
import type { DayAmount } from "./forecast.ts";

export interface UnusualDay {
  readonly day: string;
  readonly amount: number;
  readonly expected: number;
  readonly isFinal: boolean;
}

export const UNUSUAL_METHOD =
  "A day is expected to have what its weekday had in the last eight weeks, more or less by as much as the last seven days were above or below their own weekdays. It is unusual where it differs from that far more than the days of those weeks did.";

const WEEK = 7;
const BASE_DAYS = 8 * WEEK;
/** With less history nothing is expected, so a new project is never unusual. */
const LEAST = { weekdays: 3, levels: 5, deviations: 14 };
/** Days of history that are needed before the first judged day. */
export const UNUSUAL_DAYS = 2 * BASE_DAYS + WEEK;

/** In standard deviations of ordinary days, chosen by measurement. */
const THRESHOLD = 3.25;
/** Lower bound of a standard deviation, as a logarithm: 5 %. */
const LEAST_DEVIATION = 0.05;
/** Longer runs of unusual days are a new level, not unusual. */
const MOST_IN_A_ROW = 2;

interface Base {
  readonly n: number;
  readonly amount: number;
  /** Distance to the weekday's usual amount. Null if unknown. */
  readonly level: number | null;
  readonly deviation: number | null;
  isLeftOut: boolean;
}

/**
 * Returns the unusual days of a series, in order. Expectations come from final days that were not unusual, unless they began
 * a new level. A day that is not final may still grow, so it is never unusual for a low amount.
 */
export function unusualDays(days: readonly DayAmount[], threshold = THRESHOLD): UnusualDay[] {
  const base: Base[] = [];
  const found: UnusualDay[] = [];
  let row = { days: 0, sign: 0, last: 0 };
  for (const { day, amount: counted, isFinal } of days) {
    if (counted === null) continue;
    const n = Date.parse(day) / DAY_MS;
    const amount = Math.log(counted + 1);
    while (base[0] !== undefined && n - base[0].n > BASE_DAYS) base.shift();
    const ordinary = base.filter(({ isLeftOut }) => !isLeftOut);
    const weekday = middle(
      ordinary.filter((one) => (n - one.n) % WEEK === 0).map((one) => one.amount),
      LEAST.weekdays,
    );
    const levels = ordinary.slice(-WEEK).map((one) => one.level);
    const level = middle(
      levels.filter((one) => one !== null),
      LEAST.levels,
    );
    const expected = weekday === null || level === null ? null : weekday + level;
    const deviation = expected === null ? null : amount - expected;
    const isUnusual =
      deviation !== null && Math.abs(deviation) > threshold * deviationOf(ordinary, expected ?? 0);
    const sign = isUnusual ? Math.sign(deviation) : 0;
    const goesOn = sign !== 0 && sign === row.sign && n === row.last + 1;
    row = { days: goesOn ? row.days + 1 : Math.abs(sign), sign, last: n };
    const isNewLevel = row.days > MOST_IN_A_ROW;
    if (isFinal) {
      const above = weekday === null ? null : amount - weekday;
      base.push({ n, amount, level: above, deviation, isLeftOut: isUnusual });
      if (isNewLevel) for (const one of base) if (one.n > n - row.days) one.isLeftOut = false;
    }
    if (isUnusual && !isNewLevel && (isFinal || sign > 0))
      found.push({ day, amount: counted, expected: Math.max(0, Math.exp(expected ?? 0) - 1), isFinal });
  }
  return found;
}

/** The unit is an ordinary day of all series together. */
const LEAST_PART = 0.02;

/**
 * Returns the unusual days since `from` of each series of a source, except those that differ by little. `ordinary`: all other
 * days of the series.
 */
export function unusualSince<Series extends { readonly days: readonly DayAmount[] }>(
  all: readonly Series[],
  from: string,
): { readonly of: Series; readonly unusual: UnusualDay[]; readonly ordinary: DayAmount[] }[] {
  const loaded = all.flatMap(({ days }) => days.filter(({ day, amount }) => day >= from && amount !== null));
  const sum = loaded.reduce((total, { amount }) => total + (amount ?? 0), 0);
  const least = (LEAST_PART * sum) / Math.max(1, new Set(loaded.map(({ day }) => day)).size);
  return all.map((of) => {
    const unusual = unusualDays(of.days);
    const isUnusual = new Set(unusual.map(({ day }) => day));
    return {
      of,
      unusual: unusual.filter((one) => one.day >= from && differenceOf(one) >= least),
      ordinary: of.days.filter(({ day }) => !isUnusual.has(day)),
    };
  });
}

export function differenceOf({ amount, expected }: UnusualDay): number {
  return Math.abs(amount - expected);
}

export function stepsOf(unusual: readonly UnusualDay[]): UnusualDay[] {
  const sign = ({ amount, expected }: UnusualDay) => Math.sign(amount - expected);
  return unusual.filter((one, n) => {
    const before = unusual[n - 1];
    return before === undefined || addDays(before.day, 1) !== one.day || sign(before) !== sign(one);
  });
}

function deviationOf(ordinary: readonly Base[], expected: number): number {
  let [known, squares] = [0, 0];
  for (const { deviation } of ordinary) {
    if (deviation === null) continue;
    known += 1;
    squares += deviation ** 2;
  }
  if (known < LEAST.deviations) return Number.POSITIVE_INFINITY;
  const ofDays = Math.sqrt(squares / known);
  // Independent events vary by the root of their number.
  const ofChance = 1 / Math.sqrt(Math.max(Math.exp(expected), 1));
  return Math.max(ofDays, ofChance, LEAST_DEVIATION);
}

/** Mean of the middle half, which no single day moves far. Null for fewer values than `least`. */
function middle(values: readonly number[], least: number): number | null {
  if (values.length < least) return null;
  const cut = Math.floor(values.length / 4);
  return mean(values.toSorted((a, b) => a - b).slice(cut, values.length - cut));
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, one) => sum + one, 0) / values.length;
}
