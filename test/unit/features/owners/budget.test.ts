import fc from "fast-check";
import { expect, test } from "vitest";
import { addDays, daysBetween } from "../../../../src/core/domain/time/days.ts";
import { amountOf } from "../../../../src/core/domain/usage/amount.ts";
import { expectedDays } from "../../../../src/core/domain/usage/forecast.ts";
import { type BudgetDay, type BudgetState, budgetState } from "../../../../src/features/owners/budget.ts";
import { seed } from "../../../support/drawn.ts";

const FIRST_DAY = "2026-10-01";
const MONTH = { from: "2026-11-01", to: "2026-12-01" };
const PERIOD = { from: "2026-10-20", to: "2026-11-20" };
const MARKS = [50, 90, 100];
const BUDGET = { amount: "1000", warnAt: MARKS };

test("a budget that is used up says since when, to the last digit", () => {
  const stateOn = (today: string, of: (day: string) => string) =>
    budgetState(BUDGET, {
      today,
      period: MONTH,
      days: Array.from({ length: daysBetween({ from: FIRST_DAY, to: today }) + 1 }, (_, n) => {
        const day = addDays(FIRST_DAY, n);
        const loaded = { isLoaded: true, isUnpriced: false, isFinal: addDays(day, 3) < today, missingIn: [] };
        return { ...loaded, day, amount: amountOf(of(day)) };
      }),
    });
  const exact = (day: string) => (day === "2026-11-05" ? "960.0000000001" : "39.9999999999");
  expect(stateOn("2026-11-04", exact).reached?.isSure).toBe(false);
  expect(stateOn("2026-11-06", exact)).toMatchObject({
    passed: 100,
    reached: { day: "2026-11-05", isSure: true },
  });
  const less = (day: string) =>
    day === "2026-11-05" ? "960.0000000001" : day < "2026-11-05" ? "9.9999999999" : "0";
  expect(stateOn("2026-11-06", less)).toMatchObject({ percent: 99.9, passed: 90 });
});

interface DrawnDay {
  readonly day: string;
  readonly used: number;
  readonly state: "final" | "provisional" | "missing" | "unpriced";
}

const used = fc.record({
  used: fc.nat(90),
  state: fc.constantFrom<DrawnDay["state"]>("final", "provisional", "missing", "unpriced"),
});
const drawn = fc.record({
  period: fc.constantFrom(MONTH, PERIOD),
  over: fc.integer({ min: -3, max: 34 }),
  /** Days without data since `FIRST_DAY`. */
  without: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.nat(60)),
  usual: fc.array(fc.nat(90), { minLength: 100, maxLength: 100 }),
  /** Days that are not as usual, which is final until three days before today. */
  odd: fc.dictionary(fc.nat(70).map(String), used, { maxKeys: 4 }),
  mayBeLess: fc.boolean(),
});

const SEED = seed();
test(`a budget is what its days add up to, counted one by one, over any days and wherever today is [seed ${SEED}]`, () => {
  let [reached, forecast] = [0, 0];
  fc.assert(
    fc.property(drawn, ({ period, over, without, usual, odd, mayBeLess }) => {
      const today = addDays(period.from, over);
      const days: DrawnDay[] = [];
      for (let n = without; addDays(FIRST_DAY, n) <= today; n++) {
        const day = addDays(FIRST_DAY, n);
        const state = addDays(day, 3) < today ? "final" : "provisional";
        days.push({ day, used: usual[n] ?? 0, state, ...odd[n] });
      }
      const budget = { ...BUDGET, mayBeLess };
      const found = budgetState(budget, { today, period, days: days.map(given) });
      const expected = counted(days, { today, period, mayBeLess });
      expect(found).toMatchObject({ ...expected, forecast: found.forecast });
      if (expected.forecast === null) expect(found.forecast).toBeNull();
      else expect(found.forecast).toBeCloseTo(expected.forecast, 6);
      if (found.reached?.isSure) reached++;
      if (found.forecast !== null) forecast++;
    }),
    { seed: SEED, numRuns: 600 },
  );
  // Else the property says little.
  expect(Math.min(reached, forecast)).toBeGreaterThan(50);
});

function given({ day, used, state }: DrawnDay): BudgetDay {
  const isLoaded = state === "final" || state === "provisional";
  return {
    day,
    amount: amountOf(used),
    isLoaded,
    isUnpriced: state === "unpriced",
    isFinal: state === "final",
    missingIn: isLoaded ? [] : [state],
  };
}

type Where = { today: string; period: typeof MONTH; mayBeLess: boolean };

function counted(days: readonly DrawnDay[], { today, period, mayBeLess }: Where): BudgetState {
  const own = days.filter(({ day }) => day >= period.from && day < period.to);
  const isKnown = ({ state }: DrawnDay) => state === "final" || state === "provisional";
  const sum = (of: readonly DrawnDay[]) => of.reduce((all, { used }) => all + used, 0);
  const missing = own.filter((one) => !isKnown(one) && one.day < today);
  const later: string[] = [];
  let all = 0;
  for (let day = period.from; day < period.to; day = addDays(day, 1)) {
    all++;
    if (day >= today) later.push(day);
  }
  let reached: BudgetState["reached"] = null;
  const first = own.findIndex((_, n) => sum(own.slice(0, n + 1)) >= 1000);
  const unsure = mayBeLess ? own.indexOf(missing[0] as DrawnDay) : -1;
  const isOverOrAhead = later.length === 0 || today < period.from;
  const expected =
    isOverOrAhead || missing.length > 0
      ? null
      : expectedDays(
          days.map((one) => ({
            day: one.day,
            isFinal: one.state === "final",
            amount: isKnown(one) ? one.used : null,
          })),
          later,
        );
  let forecast: number | null = null;
  if (first >= 0 && (unsure < 0 || first < unsure))
    reached = { day: (own[first] as DrawnDay).day, isSure: true };
  if (expected !== null) {
    const ofToday = own.find(({ day }) => day === today)?.used ?? 0;
    forecast = sum(own) - ofToday;
    for (const [n, day] of later.entries()) {
      const amount = expected[n] ?? 0;
      forecast += n === 0 ? Math.max(ofToday, amount) : amount;
      if (forecast >= 1000) reached ??= { day, isSure: false };
    }
  }
  const spent = sum(own);
  return {
    spent: amountOf(spent),
    final: amountOf(sum(own.filter(({ state }) => state === "final"))),
    daysMissing: missing.length,
    daysUnpriced: missing.filter(({ state }) => state === "unpriced").length,
    missingIn: [...new Set(missing.map(({ state }) => state))].sort(),
    countedFrom: own[0]?.day ?? null,
    percent: spent / 10,
    percentOfTime: today < period.from ? 0 : Math.floor((100 * (all - later.length)) / all),
    isOver: later.length === 0,
    forecast,
    reached,
    passed: MARKS.findLast((mark) => spent >= mark * 10) ?? null,
  };
}
