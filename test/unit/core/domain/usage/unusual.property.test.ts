import fc from "fast-check";
import { expect, test } from "vitest";
import { addDays } from "../../../../../src/core/domain/time/days.ts";
import type { DayAmount } from "../../../../../src/core/domain/usage/forecast.ts";
import { unusualDays } from "../../../../../src/core/domain/usage/unusual.ts";
import { seed, times } from "../../../../support/drawn.ts";

/** How well they are found is measured by `npm run bench:unusual`. */

const SEED = seed();
const FIRST = "2026-01-05";

function series(length: number, given: Readonly<Record<number, Partial<DayAmount>>> = {}): DayAmount[] {
  return Array.from({ length }, (_, n) => {
    const usual = n % 7 >= 5 ? 200 : 1000;
    const amount = Math.round(usual * (1 + 0.04 * Math.sin(n * 2.399)));
    return { day: addDays(FIRST, n), amount, isFinal: true, ...given[n] };
  });
}
const at = (days: readonly DayAmount[]) =>
  unusualDays(days).map(({ day }) => days.findIndex((one) => one.day === day));

test("a day with far more or far fewer than its weekday is unusual, and says what was expected", () => {
  const days = series(100, { 70: { amount: 2_500 }, 82: { amount: 900 }, 93: { amount: 100 } });
  const found = unusualDays(days);
  expect(found.map(({ day }) => day)).toEqual([70, 82, 93].map((n) => addDays(FIRST, n)));
  for (const [n, expected] of [1000, 200, 1000].entries())
    expect(Math.abs((found[n]?.expected ?? 0) / expected - 1)).toBeLessThan(0.06);
  expect(at(series(100))).toEqual([]);
});

test("an unusual day hides none after it", () => {
  expect(at(series(100, { 70: { amount: 50_000 }, 77: { amount: 1_500 }, 78: { amount: 700 } }))).toEqual([
    70, 77, 78,
  ]);
});

test("nothing is unusual before six weeks are known, and a gap never is", () => {
  expect(at(series(100, { 20: { amount: 9_000 } }))).toEqual([]);
  expect(at(series(100, { 80: { amount: null }, 81: { amount: null } }))).toEqual([]);
  expect(at(series(100, { 80: { amount: 0 } }))).toEqual([80]);
});

test("a day that is not final is unusual for having much, not for having little, and says nothing about others", () => {
  const open = { isFinal: false };
  expect(at(series(100, { 97: { ...open, amount: 100 }, 99: { ...open, amount: 5_000 } }))).toEqual([99]);
  const low = Object.fromEntries([90, 91, 92, 93, 94, 95, 96].map((n) => [n, { ...open, amount: 50 }]));
  expect(at(series(100, { ...low, 99: { ...open, amount: 1_500 } }))).toEqual([99]);
  const [found] = unusualDays(series(100, { 99: { ...open, amount: 5_000 } }));
  expect(found?.isFinal).toBe(false);
});

test("days that are missing move no weekday, and nothing is expected below zero", () => {
  const all = series(130, { 110: { amount: 900 } });
  expect(unusualDays(all.filter((_, n) => n < 80 || n >= 90)).map(({ day }) => day)).toEqual([all[110]?.day]);
  const rare = series(130).map((one, n) => ({ ...one, amount: n === 120 ? 40 : n % 9 === 0 ? 1 : 0 }));
  for (const { expected } of unusualDays(rare)) expect(expected).toBeGreaterThanOrEqual(0);
});

test("a new level is told twice, and is what is expected afterwards", () => {
  const level = Object.fromEntries(
    series(140).map(({ amount }, n) => [n, n < 80 ? {} : { amount: (amount ?? 0) * 2 }]),
  );
  expect(at(series(140, level))).toEqual([80, 81]);
  expect(at(series(140, { ...level, 120: { amount: 1000 } }))).toEqual([80, 81, 120]);
});

test(`what is said of a day follows from it and the days before, never from later ones [seed ${SEED}]`, () => {
  const amount = fc.option(fc.integer({ min: 0, max: 5_000 }), { freq: 12 });
  fc.assert(
    fc.property(
      fc.array(amount, { minLength: 60, maxLength: 130 }),
      fc.integer({ min: 50, max: 129 }),
      fc.nat({ max: 20 }),
      (amounts, until, open) => {
        const days = amounts.map((amount, n): DayAmount => {
          return { day: addDays(FIRST, n), amount, isFinal: amount !== null && n < amounts.length - open };
        });
        const all = unusualDays(days);
        const end = addDays(FIRST, until);
        expect(unusualDays(days.slice(0, until))).toEqual(all.filter(({ day }) => day < end));
        for (const { day, amount, isFinal } of all) {
          const own = days.find((one) => one.day === day);
          expect(own).toMatchObject({ amount, isFinal });
        }
      },
    ),
    { seed: SEED, numRuns: times(100) },
  );
});
