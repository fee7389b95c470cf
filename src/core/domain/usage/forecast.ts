import { addDays, addMonths, daysBetween, monthStart } from "../time/days.ts";

export interface DayAmount {
  readonly day: string;
  readonly amount: number | null;
  readonly isFinal: boolean;
}

export const FORECAST_METHOD =
  "Each coming day is the average of its weekday over the last four final weeks, scaled to the total of the last two weeks.";

const WEEK = 7;
const SHAPE_DAYS = 4 * WEEK;
const LEVEL_DAYS = 2 * WEEK;
/** Four weeks of final days, and ten that may not be final yet. */
export const FORECAST_DAYS = SHAPE_DAYS + 10;

/**
 * Forecasts the total of a month: its loaded days before `today`, and for each later day the amount expected of its weekday.
 * Today counts with the larger of its own amount and the expected one. `days` are in order without gaps. Null if less than
 * two weeks are final, or a day of the month before today is not loaded.
 */
export function monthForecast(days: readonly DayAmount[], today: string): number | null {
  const end = addMonths(monthStart(today), 1);
  const rest = Array.from({ length: daysBetween({ from: today, to: end }) }, (_, n) => addDays(today, n));
  const expected = expectedDays(days, rest);
  if (expected === null) return null;
  const past = days.filter(({ day }) => day >= monthStart(today) && day < today);
  if (past.some(({ amount }) => amount === null)) return null;
  const sum = past.reduce((all, { amount }) => all + (amount ?? 0), 0);
  const soFar = days.find(({ day }) => day === today)?.amount ?? 0;
  return expected.reduce((all, amount, n) => all + (n === 0 ? Math.max(amount, soFar) : amount), sum);
}

/** The expected amount of each wanted day, from final days before it. Null if less than two weeks are final. */
export function expectedDays(days: readonly DayAmount[], wanted: readonly string[]): number[] | null {
  const final = days.filter(
    (one): one is DayAmount & { amount: number } => one.isFinal && one.amount !== null,
  );
  const shaping = final.slice(-SHAPE_DAYS);
  if (shaping.length < LEVEL_DAYS) return null;
  const all = mean(shaping);
  const byWeekday = Map.groupBy(shaping, ({ day }) => weekdayOf(day));
  const shapeOf = (day: string) => {
    const same = byWeekday.get(weekdayOf(day));
    return same === undefined ? all : mean(same);
  };
  const recent = shaping.slice(-LEVEL_DAYS);
  const usual = recent.reduce((sum, { day }) => sum + shapeOf(day), 0);
  const level = usual === 0 ? 1 : recent.reduce((sum, { amount }) => sum + amount, 0) / usual;
  return wanted.map((day) => shapeOf(day) * level);
}

function mean(days: readonly { readonly amount: number }[]): number {
  return days.reduce((sum, { amount }) => sum + amount, 0) / days.length;
}

function weekdayOf(day: string): number {
  return new Date(day).getUTCDay();
}
