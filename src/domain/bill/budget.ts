import type { Days } from "../time/days.ts";
import { addDays, daysBetween } from "../time/days.ts";
import { type Amount, amountDrawn, amountOf } from "../usage/amount.ts";
import { type DayAmount, expectedDays } from "../usage/forecast.ts";

/** A day of what a budget is about. */
export interface BudgetDay {
  readonly day: string;
  readonly amount: Amount;
  /** Whether all of it is known: loaded and, of money, priced. */
  readonly isLoaded: boolean;
  /** Of money: it has usage that a price is missing for. */
  readonly isUnpriced: boolean;
  readonly isFinal: boolean;
  /** Slugs of the sources in which a part of it is not loaded or lacks a price. */
  readonly missingIn: readonly string[];
}

/** How a budget stands in its period: a calendar month, or a billing period. */
export interface BudgetState {
  /** As far as it is loaded. */
  readonly spent: Amount;
  /** Of it, on final days. */
  readonly final: Amount;
  /** Days of the period, up to today, that are not loaded or lack a price: then it is at least as much. */
  readonly daysMissing: number;
  /** Those of them that lack a price. */
  readonly daysUnpriced: number;
  /** Slugs of the sources that those days are missing in. */
  readonly missingIn: readonly string[];
  /** The first day of the period that counts, which is later where the data starts in it; null: none of it does. */
  readonly countedFrom: string | null;
  /** Per cents of the amount, and of the period's days: those that are over. */
  readonly percent: number;
  readonly percentOfTime: number;
  readonly isOver: boolean;
  /** What the period comes to; null where nothing can be said of it, as of one that is over or has not begun. */
  readonly forecast: number | null;
  /** The day on which the amount is used up; `isSure` if that day is loaded. */
  readonly reached: { readonly day: string; readonly isSure: boolean } | null;
  /** The largest per cent of `warnAt` that is passed. */
  readonly passed: number | null;
}

interface ExpectedBy {
  readonly day: string;
  readonly sum: number;
}

/** `days`: in order and without gaps, from before the period (`FORECAST_DAYS`) up to today or the period's end. */
export function budgetState(
  {
    amount,
    warnAt,
    mayBeLess = false,
  }: {
    readonly amount: string;
    readonly warnAt: readonly number[];
    /** Whether what is not loaded may be taken from what is spent. */
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

/** By the days before `today` as they are loaded, and what each later one is expected to have; of `today` what it has already, if that is more. */
function expectedBy(
  own: readonly BudgetDay[],
  { past, period, today }: { past: readonly DayAmount[]; period: Days; today: string },
): ExpectedBy[] | null {
  // Of a day that is not loaded nobody knows.
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
