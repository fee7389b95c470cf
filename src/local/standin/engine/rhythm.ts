import type { Rhythm, Stream } from "./organisation.ts";
import { unit } from "./random.ts";

/**
 * The history of one stream as a function of seed, stream and time: how many traces a day has, then how they spread over
 * it. Hours are parts of the day's number, so hours and days always agree.
 */
const WEEKDAY_OFFICE = [0.15, 1, 1.05, 1.1, 1.05, 0.9, 0.2] as const; // Sunday first
const GROWTH_A_MONTH = 0.04;
const GROWTH_FROM = Date.parse("2026-01-05") / 86_400_000;

/** Traces of a full day; `day` counts from 1970-01-01. */
export function tracesOfDay(seed: number, stream: Stream, day: number): number {
  if (stream.weight === 0 || day < stream.begins || day >= stream.ends) return 0;
  const weekday = (day + 4) % 7; // 1970-01-01 was a Thursday
  const busy = stream.rhythm === "steady" || stream.rhythm === "nightly" ? 1 : (WEEKDAY_OFFICE[weekday] ?? 1);
  const growth = Math.max(0.3, 1 + (GROWTH_A_MONTH * (day - GROWTH_FROM)) / 30);
  const luck = 0.6 + 0.8 * unit(seed, stream.index, day * 4);
  return Math.floor(stream.weight * busy * growth * luck + unit(seed, stream.index, day * 4 + 1));
}

/**
 * How many of the day's traces arrived within `hours` (0 to 24, fractions allowed) after midnight UTC. It never falls
 * and reaches `ofDay` at 24, so an hour in progress grows to its final count.
 */
export function tracesByHour(
  seed: number,
  stream: Stream,
  day: number,
  hours: number,
  ofDay: number,
): number {
  if (ofDay === 0) return 0;
  const shares = SHARES[stream.rhythm];
  const whole = Math.floor(hours);
  const from = shares[whole] ?? 1;
  const share = from + ((shares[whole + 1] ?? 1) - from) * (hours - whole);
  // Bend the day a little, earlier or later; flat parts of the curve (night) stay flat.
  const bend = unit(seed, stream.index, day * 4 + 2) - 0.5;
  const bent = share + bend * share * (1 - share);
  return Math.min(ofDay, Math.floor(ofDay * bent + unit(seed, stream.index, day * 4 + 3)));
}

/** Cumulated shares at 0, 1, ... 24 o'clock. Office, evening and nightly have hours without traffic. */
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
