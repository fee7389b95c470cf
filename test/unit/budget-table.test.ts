import { expect, test } from "vitest";
import { monthNamed } from "../../src/domain/months/month.ts";
import { amountOf } from "../../src/domain/usage/amount.ts";
import type { MonthBudget } from "../../src/pipeline/bill/budgets.ts";
import { budgetTable } from "../../src/service/web/figures/budgets.ts";
import { textOf } from "../support/pages.ts";

const MONTH = monthNamed("2026-11") as NonNullable<ReturnType<typeof monthNamed>>;
const OVER: MonthBudget = {
  ...{
    line: 3,
    source: null,
    of: { kind: "owner", id: "search" },
    per: "month",
    currency: null,
    amount: "100",
  },
  ...{
    warnAt: [80],
    name: null,
    isPriced: true,
    mayBeLess: false,
    period: { from: MONTH.start, to: MONTH.end },
  },
  ...{
    spent: amountOf(40),
    final: amountOf(40),
    daysMissing: 0,
    daysUnpriced: 0,
    missingIn: [],
    countedFrom: MONTH.start,
    percent: 40,
  },
  ...{ percentOfTime: 100, isOver: true, forecast: null, reached: null, passed: null },
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
