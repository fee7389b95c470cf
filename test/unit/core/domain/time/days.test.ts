import { expect, test } from "vitest";
import {
  addDays,
  addMonths,
  dayOf,
  daysBetween,
  monthStart,
  monthsAndDays,
  rangeBefore,
  rangeFrom,
  rangeToCompare,
  shortInstant,
} from "../../../../../src/core/domain/time/days.ts";

const range = (from: string, to: string) => ({ from, to });

test("days and months are counted over year ends and leap days", () => {
  expect(dayOf(Date.parse("2026-03-01") - 1)).toBe("2026-02-28");
  expect([addDays("2028-02-28", 2), addDays("2026-01-01", -1)]).toEqual(["2028-03-01", "2025-12-31"]);
  expect(daysBetween(range("2028-02-28", "2028-03-01"))).toBe(2);
  expect(monthStart("2026-03-31")).toBe("2026-03-01");
  expect([addMonths("2026-11-30", 2), addMonths("2026-01-31", -1), addMonths("2026-01-31", 1)]).toEqual([
    "2027-01-01",
    "2025-12-01",
    "2026-02-01",
  ]);
});

test.each([
  ["2026-01-01/2026-03-01", "2026-01-01/2026-03-01", ""],
  ["2026-01-31/2026-04-02", "2026-02-01/2026-04-01", "2026-01-31/2026-02-01 2026-04-01/2026-04-02"],
  [
    "2026-01-01/2026-02-01 2026-02-01/2026-03-01 2026-04-01/2026-05-01",
    "2026-01-01/2026-03-01 2026-04-01/2026-05-01",
    "",
  ],
  [
    "2026-01-02/2026-01-05 2026-01-05/2026-01-09 2026-01-10/2026-01-11",
    "",
    "2026-01-02/2026-01-09 2026-01-10/2026-01-11",
  ],
  ["2026-01-05/2026-01-05", "", ""],
])("%j has the whole months %j and the days %j", (given, months, days) => {
  const ranges = given.split(" ").map((text) => range(...(text.split("/") as [string, string])));
  const shown = (some: typeof ranges) => some.map(({ from, to }) => `${from}/${to}`).join(" ");
  const found = monthsAndDays(ranges);
  expect([shown([...found.months]), shown([...found.days])]).toEqual([months, days]);
});

test.each([
  ["2026-03-01", "2026-04-01", "2026-02-01", "2026-03-01"],
  ["2026-01-01", "2026-04-01", "2025-10-01", "2026-01-01"],
  ["2025-12-01", "2027-01-01", "2024-11-01", "2025-12-01"],
  ["2026-03-02", "2026-04-01", "2026-01-31", "2026-03-02"],
  ["2026-05-01", "2026-05-10", "2026-04-01", "2026-04-10"],
  ["2026-03-01", "2026-03-31", "2026-02-01", "2026-03-01"],
])("before %s to %s it is %s to %s", (from, to, start, end) => {
  expect(rangeBefore({ from, to })).toEqual({ from: start, to: end });
});

test.each([
  ["2026-11-24", "2026-11-26", "2026-11-17", "2026-11-19"],
  ["2026-11-24", "2026-11-25", "2026-11-17", "2026-11-18"],
  ["2026-11-22", "2026-11-28", "2026-11-15", "2026-11-21"],
  ["2026-11-22", "2026-11-29", "2026-11-15", "2026-11-22"],
  ["2026-11-20", "2026-11-28", "2026-11-12", "2026-11-20"],
  ["2026-03-01", "2026-04-01", "2026-02-01", "2026-03-01"],
  ["2026-05-01", "2026-05-04", "2026-04-01", "2026-04-04"],
])("%s to %s is compared with %s to %s", (from, to, start, end) => {
  expect(rangeToCompare({ from, to })).toEqual({ from: start, to: end });
});

test.each([
  ["2025-10-01", "2026-10-01", "2026-11-01", "2025-11-01"],
  ["2025-02-01", "2026-10-01", "2026-12-01", "2025-04-01"],
  ["2025-02-02", "2026-10-01", "2026-11-01", "2025-03-05"],
  ["2026-02-01", "2026-10-02", "2026-10-05", "2026-02-04"],
])("from %s on as long as %s to %s ends with %s", (day, from, to, end) => {
  expect(rangeFrom(day, { from, to })).toEqual({ from: day, to: end });
});

test.each([
  ["2026-03-01T00:00:00Z", "2026-03-01"],
  ["2026-03-01T00:00:00.001Z", "2026-03-01T00:00Z"],
  ["2026-03-01T05:00:59Z", "2026-03-01T05:00Z"],
  ["2026-03-01T02:30:00+02:30", "2026-03-01"],
])("%s is %s", (instant, text) => {
  expect(shortInstant(instant)).toBe(text);
  expect(shortInstant(Date.parse(instant))).toBe(text);
});
