import { expect, test } from "vitest";
import { budgetCondition, limitCondition } from "../../../../src/features/alerts/conditions.ts";
import type { LimitUse } from "../../../../src/features/costs/usage-limit.ts";
import type { MonthBudget } from "../../../../src/features/owners/budgets.ts";

const budget: MonthBudget = {
  line: 1,
  source: null,
  of: null,
  currency: null,
  amount: "100",
  warnAt: [50, 80],
  name: null,
  isPriced: true,
  mayBeLess: false,
  per: "month",
  period: null,
  isOver: false,
  spent: 0n,
  final: 0n,
  daysMissing: 0,
  daysUnpriced: 0,
  missingIn: [],
  countedFrom: "2026-11-01",
  percent: 0,
  percentOfTime: 0,
  forecast: null,
  passed: null,
  reached: null,
};

test("a passed mark of a budget counts more than a forecast", () => {
  const countOf = (passed: number | null, isReached: boolean) => {
    const reached = isReached ? { day: "2026-11-28", isSure: false } : null;
    return budgetCondition({ budgets: [{ ...budget, passed, reached }], changedAt: 1 }).count;
  };
  expect(countOf(50, true)).toBeGreaterThan(countOf(50, false));
  expect(countOf(50, false)).toBeGreaterThan(countOf(null, true));
  expect(countOf(80, false)).toBeGreaterThan(countOf(50, true));
});

const limit: LimitUse = {
  workspaceId: "w",
  workspaceName: null,
  limitType: "monthly_traces",
  value: 100,
  isRejecting: false,
  month: "2026-11-01",
  traces: 49,
  isComplete: true,
  daysFinal: 3,
  percent: 49,
  reachedOn: null,
  workspacesNotLoaded: 0,
  tracesNotLoaded: 0,
  readAt: "2026-11-04T00:00:00Z",
};

test("a usage limit over which the platform rejects traces is critical, whatever is known of its use", () => {
  const rejecting = { ...limit, percent: null, isRejecting: true };
  expect(limitCondition([limit])).toMatchObject({ isFiring: false, count: 0 });
  expect(limitCondition([rejecting])).toMatchObject({ isFiring: true, count: 1, severity: "critical" });
});
