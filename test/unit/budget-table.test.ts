import { expect, test } from "vitest";
import { monthNamed } from "../../src/domain/months/month.ts";
import { amountOf } from "../../src/domain/usage/amount.ts";
import type { MonthBudget } from "../../src/pipeline/bill/budgets.ts";
import { budgetTable } from "../../src/service/web/figures/budgets.ts";
import { textOf } from "../support/pages.ts";

const MONTH = monthNamed("2026-11") as NonNullable<ReturnType<typeof monthNamed>>;
const OVER: MonthBudget = {
  line: 3,
  source: null,
  of: { kind: "owner", id: "search" },
  per: "month",
  currency: null,
  amount: "100",
  warnAt: [80],
  name: null,
  isPriced: true,
  mayBeLess: false,
  period: { from: MONTH.start, to: MONTH.end },
  spent: amountOf(40),
  final: amountOf(40),
  daysMissing: 0,
  daysUnpriced: 0,
  missingIn: [],
  countedFrom: MONTH.start,
  percent: 40,
  percentOfTime: 100,
  isOver: true,
  forecast: null,
  reached: null,
  passed: null,
  course: [],
  ahead: null,
};

function shown(changed: Partial<MonthBudget>, isOver = true): string {
  const page = String(budgetTable([{ ...OVER, isOver, ...changed }], MONTH));
  return textOf(/<tbody>.*<\/tbody>/s.exec(page)?.[0] ?? page).replaceAll(/\s+/g, " ");
}

test("a budget of a month that is over was kept only if all of it is known and final", () => {
  expect(shown({})).toMatch(/ kept$/);
  expect(shown({ countedFrom: "2026-11-20" })).toMatch(/ kept ?, counted from 2026-11-20 on$/);
  expect(shown({ final: amountOf(30) })).toMatch(/ not used up, and some of it may still change$/);
  expect(shown({ daysMissing: 2 })).toMatch(/ at least 40 .* not known: 2 days are not loaded$/);
  expect(shown({ daysMissing: 2, daysUnpriced: 1 })).toMatch(
    / not known: 2 days are not loaded or have usage without a price$/,
  );
  expect(shown({ daysMissing: 1, daysUnpriced: 1 })).toMatch(/ not known: 1 day has usage without a price$/);
  expect(shown({ daysMissing: 2, missingIn: ["acme", "lab"] })).toMatch(
    / 2 days are not loaded in acme, lab$/,
  );
  expect(shown({ daysMissing: 2, daysUnpriced: 2, missingIn: ["acme"] })).toMatch(
    / 2 days have usage without a price in acme$/,
  );
  expect(shown({ daysMissing: 2, missingIn: ["acme"], source: "acme" })).toMatch(/ 2 days are not loaded$/);
  expect(shown({ daysMissing: 1, mayBeLess: true })).toMatch(/ about 40 .* not known: 1 day is not loaded$/);
  expect(shown({ countedFrom: null, spent: 0n, final: 0n, percent: 0 })).toMatch(/ no day of it is known$/);
});

test("a budget of the month under way lasts only by a forecast, and says why there is none", () => {
  expect(shown({ forecast: 99 }, false)).toMatch(/ it lasts for the month$/);
  expect(shown({ forecast: null }, false)).toMatch(/ no forecast: less than two weeks are final$/);
  expect(shown({ forecast: null, daysMissing: 1, passed: 80 }, false)).toMatch(
    / 80 % is passed; no forecast: 1 day is not loaded$/,
  );
});

test("a budget of a billing period says its days, and when no such period is known", () => {
  const period = { from: "2026-10-20", to: "2026-11-20" };
  const billing = { per: "billing_period", source: "acme", percentOfTime: 70 } as const;
  expect(shown({ ...billing, period, forecast: 99, countedFrom: period.from }, false)).toMatch(
    /^ ?Owner search of source acme ?billing period 2026-10-20 to 2026-11-19, of which 70 % has passed .* it lasts for the billing period$/,
  );
  expect(shown({ ...billing, period: null, countedFrom: null }, false)).toMatch(
    / no billing period of acme is known: the platform was not asked, or shows none$/,
  );
});

test("a budget is drawn against an even pace and its forecast; a day that is not loaded leaves the later sums open", () => {
  const course = ["2026-11-01", "2026-11-02", "2026-11-03"].map((day, n) => ({
    day,
    sum: amountOf(10 * (n + 1)),
    isKnown: true,
    isFinal: n < 2,
  }));
  const ahead = Array.from({ length: 28 }, (_, n) => ({
    day: `2026-11-${String(n + 3).padStart(2, "0")}`,
    sum: 30 + 4 * n,
  }));
  const page = (changed: Partial<MonthBudget>) =>
    String(budgetTable([{ ...OVER, isOver: false, course, ahead, forecast: 138, ...changed }], MONTH));
  const titles = (text: string) =>
    [...text.matchAll(/<rect class="hit"[^>]*><title>([^<]*)/g)].map(([, one]) => one);
  const drawn = page({});
  expect(titles(drawn)).toHaveLength(30);
  expect(titles(drawn)[1]).toBe("2026-11-02: 20 traces\nBudget: 100\nEven pace: 6.67\nForecast: 20");
  expect(titles(drawn)[2]).toBe(
    "2026-11-03: 30 traces, provisional\nBudget: 100\nEven pace: 10\nForecast: 30",
  );
  expect(titles(drawn)[29]).toBe("2026-11-30, to come\nBudget: 100\nEven pace: 100\nForecast: 138");
  // No day to come is a gap.
  expect(drawn).not.toContain('class="gap"');
  const broken = page({ ahead: null, course: course.map((by, n) => ({ ...by, isKnown: n < 1 })) });
  expect(titles(broken)[1]).toMatch(/^2026-11-02: not fully loaded, at least 20 traces/);
  expect(broken.match(/class="gap"/g)).toHaveLength(1);
  expect(broken).not.toContain("forecast<");
  // What counts nothing has no picture.
  expect(page({ isPriced: false })).not.toContain("<svg");
});
