import { describe, expect, test } from "vitest";
import { columnsOf, lastMonths, monthsOf } from "../../../../../src/core/domain/coverage/coverage-columns.ts";
import { HOUR_MS } from "../../../../../src/core/domain/time/stride.ts";

const day = (text: string) => Date.parse(text);
const range = (start = "", end = "") => ({ start: day(start), end: day(end) });
const shown = (all: readonly { start: number; end: number }[]) =>
  all.map(({ start, end }) => [start, end].map((ms) => new Date(ms).toISOString().slice(0, 13)).join(" "));

describe("columns", () => {
  test.each([
    ["31 days are days", range("2026-01-05", "2026-02-05"), "day", "day", 31, "2026-01-05", "2026-02-05"],
    ["more are months", range("2026-01-05", "2026-02-06"), "day", "month", 2, "2026-01-01", "2026-03-01"],
    ["hours of two days", range("2026-01-05", "2026-01-07"), "hour", "hour", 48, "2026-01-05", "2026-01-07"],
    ["the last 13 months", range("2024-01-01", "2026-03-01"), "day", "month", 13, "2025-02-01", "2026-03-01"],
  ] as const)("%s", (_, requested, stride, length, count, start, end) => {
    const { columns, ...rest } = columnsOf(requested, stride);
    expect(rest).toEqual({ length });
    expect(columns).toHaveLength(count);
    expect([columns[0]?.start, columns.at(-1)?.end]).toEqual([day(start), day(end)]);
    expect(columns.slice(1).map(({ start }) => start)).toEqual(columns.slice(0, -1).map(({ end }) => end));
  });

  test("are whole, also where the range begins or ends within one", () => {
    const within = { start: day("2026-01-05") + 90 * 60_000, end: day("2026-01-06") + 1 };
    expect(shown(columnsOf(within, "day").columns)).toEqual([
      "2026-01-05T00 2026-01-06T00",
      "2026-01-06T00 2026-01-07T00",
    ]);
    const hours = columnsOf(within, "hour").columns;
    expect(hours).toHaveLength(24);
    expect(shown(hours.slice(0, 1))).toEqual(["2026-01-05T01 2026-01-05T02"]);
    expect(hours.at(-1)?.end).toBe(day("2026-01-06") + HOUR_MS);
  });
});

test("months are those that a range touches, whole, and leap years have a 29 February", () => {
  expect(shown(monthsOf(range("2027-12-31", "2028-02-01T01:00Z")))).toEqual([
    "2027-12-01T00 2028-01-01T00",
    "2028-01-01T00 2028-02-01T00",
    "2028-02-01T00 2028-03-01T00",
  ]);
  expect(monthsOf(range("2026-02-01", "2026-03-01"))).toEqual([range("2026-02-01", "2026-03-01")]);
  expect(monthsOf(range("2026-02-01", "2026-02-01"))).toEqual([]);
});

test("the last months are thirteen, the one under way among them", () => {
  expect(lastMonths(day("2026-03-31T23:59Z"))).toEqual(range("2025-03-01", "2026-04-01"));
  expect(lastMonths(day("2026-04-01"))).toEqual(range("2025-04-01", "2026-05-01"));
});
