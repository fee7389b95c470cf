import fc from "fast-check";
import { expect, test } from "vitest";
import { type BudgetDay, budgetState } from "../../src/domain/bill/budget.ts";
import { addDays } from "../../src/domain/time/days.ts";
import { amountDrawn, amountOf } from "../../src/domain/usage/amount.ts";
import { seed } from "../support/drawn.ts";

const MONTH = { from: "2026-11-01", to: "2026-12-01" };
const BUDGET = { amount: "1000", warnAt: [50, 90, 100] };

/** From 1 October up to a day; the last three and today are provisional. */
function days(today: string, of: (day: string) => string | number | null): BudgetDay[] {
  const all: BudgetDay[] = [];
  for (let day = "2026-10-01"; day <= today; day = addDays(day, 1)) {
    const amount = of(day);
    const isFinal = amount !== null && addDays(day, 3) < today;
    all.push({
      day,
      amount: amountOf(amount ?? 0),
      isLoaded: amount !== null,
      isUnpriced: false,
      isFinal,
      missingIn: amount === null ? ["default"] : [],
    });
  }
  return all;
}

const stateOn = (today: string, of: (day: string) => string | number | null) =>
  budgetState(BUDGET, { days: days(today, of), period: MONTH, today });

test("what is spent, final apart from provisional, and when it will be used up", () => {
  const state = stateOn("2026-11-11", (day) => (day < "2026-11-11" ? 40 : 0));
  expect(state).toMatchObject({
    spent: amountOf(400),
    final: amountOf(280),
    daysMissing: 0,
    percent: 40,
    percentOfTime: 33,
    passed: null,
    reached: { day: "2026-11-25", isSure: false },
  });
  expect(state.forecast).toBeCloseTo(1200, 6);
});

test("a budget that is used up says since when, to the last digit", () => {
  const exact = (day: string) => (day === "2026-11-05" ? "960.0000000001" : "39.9999999999");
  expect(stateOn("2026-11-04", exact).reached?.isSure).toBe(false);
  // 4 x 39.9999999999 + 960.0000000001 is more than 1000.
  expect(stateOn("2026-11-06", exact)).toMatchObject({
    passed: 100,
    reached: { day: "2026-11-05", isSure: true },
  });
  const less = (day: string) =>
    day === "2026-11-05" ? "960.0000000001" : day < "2026-11-05" ? "9.9999999999" : "0";
  expect(stateOn("2026-11-06", less)).toMatchObject({ percent: 99.9, passed: 90 });
});

test("of a day that is not loaded nothing is said", () => {
  const state = stateOn("2026-11-11", (day) => (day === "2026-11-09" ? null : 40));
  expect(state).toMatchObject({ daysMissing: 1, forecast: null, reached: null, spent: amountOf(400) });
  // What is used up without it is used up.
  expect(stateOn("2026-11-11", (day) => (day === "2026-11-09" ? null : 400)).reached).toEqual({
    day: "2026-11-03",
    isSure: true,
  });
});

test("days that are over are counted by the calendar, wherever the data starts, and today is none of them", () => {
  const from = (start: string, today: string) =>
    budgetState(BUDGET, {
      days: days(today, () => 1).filter(({ day }) => day >= start),
      period: MONTH,
      today,
    });
  expect(from("2026-10-01", "2026-11-01")).toMatchObject({ percentOfTime: 0, countedFrom: "2026-11-01" });
  expect(from("2026-11-20", "2026-11-25")).toMatchObject({ percentOfTime: 80, countedFrom: "2026-11-20" });
  expect(from("2026-10-01", "2026-11-30").percentOfTime).toBe(96);
  expect(from("2026-12-01", "2026-11-30").countedFrom).toBeNull();
});

test("where a day that is not loaded may take something away, nothing after it is sure", () => {
  const of = (missing: string) =>
    budgetState(
      { ...BUDGET, mayBeLess: true },
      {
        period: MONTH,
        today: "2026-11-11",
        days: days("2026-11-11", (day) => (day === missing ? null : 200)),
      },
    ).reached;
  expect(of("2026-11-03")).toBeNull();
  expect(of("2026-11-09")).toEqual({ day: "2026-11-05", isSure: true });
});

test("a month that is over has no forecast", () => {
  expect(stateOn("2026-12-05", () => 40)).toMatchObject({
    spent: amountOf(1200),
    percentOfTime: 100,
    forecast: null,
    percent: 120,
    reached: { day: "2026-11-25", isSure: true },
  });
  expect(stateOn("2026-12-05", () => 30)).toMatchObject({ percent: 90, passed: 90, reached: null });
});

test("a billing period is counted by its own days, across months", () => {
  const period = { from: "2026-10-20", to: "2026-11-20" };
  const of = (today: string, amount = 40) =>
    budgetState(BUDGET, { days: days(today, () => amount), period, today });
  expect(of("2026-11-11")).toMatchObject({
    spent: amountOf(23 * 40),
    percentOfTime: 70,
    countedFrom: "2026-10-20",
    isOver: false,
    reached: { day: "2026-11-13", isSure: false },
  });
  expect(of("2026-11-11").forecast).toBeCloseTo(31 * 40, 6);
  expect(of("2026-11-20")).toMatchObject({
    spent: amountOf(31 * 40),
    percentOfTime: 100,
    isOver: true,
    forecast: null,
  });
  // Of one that has not begun nothing is said.
  expect(of("2026-10-19", 900)).toMatchObject({
    spent: 0n,
    percent: 0,
    percentOfTime: 0,
    countedFrom: null,
    forecast: null,
    reached: null,
    passed: null,
  });
});

const SEED = seed();
test(`the day on which it is used up is the first whose sum is no less, and never before today if not yet used [seed ${SEED}]`, () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 90 }), { minLength: 61, maxLength: 61 }),
      fc.integer({ min: 0, max: 29 }),
      (amounts, at) => {
        const today = addDays(MONTH.from, at);
        const of = (day: string) =>
          amounts[Math.round((Date.parse(day) - Date.parse("2026-10-01")) / 86_400_000)] ?? 0;
        const { reached, spent, forecast } = stateOn(today, of);
        let sum = 0;
        let first: string | undefined;
        for (let day = MONTH.from; day <= today; day = addDays(day, 1)) {
          sum += of(day);
          if (sum >= 1000) first ??= day;
        }
        expect(amountDrawn(spent)).toBe(sum);
        if (first !== undefined) expect(reached).toEqual({ day: first, isSure: true });
        else if (reached !== null) expect(reached.day >= today && !reached.isSure).toBe(true);
        // The forecast and the day agree.
        if (first === undefined) expect(reached !== null).toBe((forecast ?? 0) >= 1000);
      },
    ),
    { seed: SEED, numRuns: 300 },
  );
});
