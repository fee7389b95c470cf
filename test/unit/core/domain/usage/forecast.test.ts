import { expect, test } from "vitest";
import { addDays } from "../../../../../src/core/domain/time/days.ts";
import {
  type DayAmount,
  expectedDays,
  monthForecast,
} from "../../../../../src/core/domain/usage/forecast.ts";

const TODAY = "2026-11-10";
const usual = (day: string) => ([0, 6].includes(new Date(day).getUTCDay()) ? 10 : 100);

function history(of: (day: string) => number | null, days = 40): DayAmount[] {
  return Array.from({ length: days + 1 }, (_, n) => {
    const day = addDays(TODAY, n - days);
    return { day, amount: of(day), isFinal: n < days - 3 };
  });
}

const sumOf = (from: string, to: string, of: (day: string) => number) => {
  let sum = 0;
  for (let day = from; day < to; day = addDays(day, 1)) sum += of(day);
  return sum;
};

test("a month of weekdays and weekends comes to what it will", () => {
  const days = history((day) => (day === TODAY ? 5 : usual(day)));
  expect(monthForecast(days, TODAY)).toBeCloseTo(sumOf("2026-11-01", "2026-12-01", usual), 6);
});

test("what is provisional is counted, and forecasts nothing", () => {
  const days = history((day) => (day >= "2026-11-07" && day < TODAY ? 1000 : usual(day)));
  const expected = sumOf("2026-11-01", "2026-11-07", usual) + 3000 + sumOf(TODAY, "2026-12-01", usual);
  expect(monthForecast(days, TODAY)).toBeCloseTo(expected, 6);
});

test("today counts what it has, if that is more than it should", () => {
  const days = history((day) => (day === TODAY ? 250 : usual(day)));
  expect(monthForecast(days, TODAY)).toBeCloseTo(sumOf("2026-11-01", "2026-12-01", usual) + 150, 6);
});

test("it follows the level of the last two weeks, and a day without usage is no gap", () => {
  const doubled = history((day) => usual(day) * (day >= "2026-10-24" ? 2 : 1));
  expect(expectedDays(doubled, ["2026-11-11", "2026-11-14"])).toEqual([
    expect.closeTo(200, 6),
    expect.closeTo(20, 6),
  ]);
  const none = history(() => 0);
  expect(monthForecast(none, TODAY)).toBe(0);
});

test("a month in which the data starts has the days since then", () => {
  const today = "2026-11-26";
  const days = Array.from({ length: 22 }, (_, n): DayAmount => {
    const day = addDays("2026-11-05", n);
    return { day, amount: usual(day), isFinal: day < "2026-11-23" };
  });
  expect(monthForecast(days, today)).toBeCloseTo(sumOf("2026-11-05", "2026-12-01", usual), 6);
});

test("nothing is said where less than two weeks are final, or a day of the month is not loaded", () => {
  expect(monthForecast(history(usual, 16), TODAY)).toBeNull();
  expect(monthForecast(history(usual, 17), TODAY)).not.toBeNull();
  expect(
    monthForecast(
      history((day) => (day === "2026-11-08" ? null : usual(day))),
      TODAY,
    ),
  ).toBeNull();
  expect(
    monthForecast(
      history((day) => (day === "2026-10-20" ? null : usual(day))),
      TODAY,
    ),
  ).not.toBeNull();
});
