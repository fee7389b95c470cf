import type { Days } from "../../core/domain/time/days.ts";
import { addDays, daysBetween } from "../../core/domain/time/days.ts";
import { type Amount, amountDrawn, amountOf } from "../../core/domain/usage/amount.ts";
import { type DayAmount, expectedDays } from "../../core/domain/usage/forecast.ts";

export interface BudgetDay {
  readonly day: string;
  readonly amount: Amount;
  /** True if all usage of the day is loaded and, for money, priced. */
  readonly isLoaded: boolean;
  /** For money: some usage has no price. */
  readonly isUnpriced: boolean;
  readonly isFinal: boolean;
  /** Slugs of the sources in which usage of the day is not loaded or not priced. */
  readonly missingIn: readonly string[];
}

export interface BudgetState {
  readonly spent: Amount;
  /** The part of `spent` that is on final days. */
  readonly final: Amount;
  /** Days before today that are not loaded or not priced. If there are any, `spent` is a lower bound. */
  readonly daysMissing: number;
  readonly daysUnpriced: number;
  readonly missingIn: readonly string[];
  /** First counted day of the period; later than the period's start if the data starts later. Null: no day counts. */
  readonly countedFrom: string | null;
  /** Percentage of the amount that is spent, and of the period's days that have passed. */
  readonly percent: number;
  readonly percentOfTime: number;
  readonly isOver: boolean;
  /** Forecast for the whole period. Null if the period is over or has not begun, or without a basis for a forecast. */
  readonly forecast: number | null;
  /** Day on which the amount is used up. `isSure` if that day is loaded. */
  readonly reached: { readonly day: string; readonly isSure: boolean } | null;
  /** The highest mark of `warnAt` that `percent` has passed. */
  readonly passed: number | null;
}

interface ExpectedBy {
  readonly day: string;
  readonly sum: number;
}

/** `days` are sorted and without gaps. They begin `FORECAST_DAYS` before the period and end today or with the period. */
export function budgetState(
  {
    amount,
    warnAt,
    mayBeLess = false,
  }: {
    readonly amount: string;
    readonly warnAt: readonly number[];
    /** True if unloaded usage may be negative, so that `spent` is no lower bound. */
    readonly mayBeLess?: boolean;
  },
  {
    days,
    period,
    today,
  }: { readonly days: readonly BudgetDay[]; readonly period: Days; readonly today: string },
): BudgetState {
  const own = days.filter(({ day }) => day >= period.from && day < period.to && day <= today);
  const sum = (of: readonly BudgetDay[]) => of.reduce((all, one) => all + one.amount, 0n);
  const spent = sum(own);
  const limit = amountOf(amount);
  const percent = Number((spent * 1000n) / limit) / 10;
  const past = days.map(({ isLoaded, amount: used, day, isFinal }): DayAmount => {
    return { day, isFinal, amount: isLoaded ? amountDrawn(used) : null };
  });
  const missing = own.filter(({ isLoaded, day }) => !isLoaded && day < today);
  const ahead = expectedBy(own, { past, period, today });
  const timeOver = { from: period.from, to: today < period.to ? today : period.to };
  return {
    spent,
    final: sum(own.filter(({ isLoaded, isFinal }) => isLoaded && isFinal)),
    daysMissing: missing.length,
    missingIn: [...new Set(missing.flatMap((one) => one.missingIn))].sort(),
    daysUnpriced: own.filter(({ isUnpriced, day }) => isUnpriced && day < today).length,
    countedFrom: own[0]?.day ?? null,
    percent,
    isOver: period.to <= today,
    percentOfTime: Math.max(0, Math.floor((100 * daysBetween(timeOver)) / daysBetween(period))),
    forecast: ahead?.at(-1)?.sum ?? null,
    reached: reachedOn(limit, { own, ahead, today, mayBeLess }),
    passed: warnAt.findLast((mark) => percent >= mark) ?? null,
  };
}

/**
 * Adds up the loaded days before `today` and the expected amounts of later days. Today counts with its own or its expected
 * amount, whichever is larger.
 */
function expectedBy(
  own: readonly BudgetDay[],
  { past, period, today }: { past: readonly DayAmount[]; period: Days; today: string },
): ExpectedBy[] | null {
  if (today < period.from || period.to <= today || own.some(({ isLoaded, day }) => !isLoaded && day < today))
    return null;
  const later = Array.from({ length: daysBetween({ from: today, to: period.to }) }, (_, n) =>
    addDays(today, n),
  );
  const expected = expectedDays(past, later);
  if (expected === null) return null;
  const soFar = own.find(({ day }) => day === today)?.amount ?? 0n;
  let sum = amountDrawn(own.reduce((all, { amount }) => all + amount, -soFar));
  return later.map((day, n) => {
    const amount = expected[n] ?? 0;
    sum += n === 0 ? Math.max(amount, amountDrawn(soFar)) : amount;
    return { day, sum };
  });
}

function reachedOn(
  limit: Amount,
  {
    own,
    ahead,
    today,
    mayBeLess,
  }: {
    own: readonly BudgetDay[];
    ahead: readonly ExpectedBy[] | null;
    today: string;
    mayBeLess: boolean;
  },
): BudgetState["reached"] {
  let used = 0n;
  for (const { day, amount, isLoaded } of own) {
    if (mayBeLess && !isLoaded && day < today) return null;
    used += amount;
    if (used >= limit) return { day, isSure: true };
  }
  const by = ahead?.find(({ sum }) => sum >= amountDrawn(limit));
  return by === undefined ? null : { day: by.day, isSure: false };
}
