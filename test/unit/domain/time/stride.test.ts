import { describe, expect, test } from "vitest";
import {
  ceilToGrid,
  DAY_MS,
  floorToGrid,
  HOUR_MS,
  type Stride,
  strideOfRange,
} from "../../../../src/domain/time/stride.ts";

describe("strideOfRange, on both sides of every edge of the platform's table", () => {
  test.each<[string, number, Stride]>([
    ["1 h", HOUR_MS, "hour"],
    ["23 h", 23 * HOUR_MS, "hour"],
    ["24 h less 1 ms", DAY_MS - 1, "hour"],
    ["24 h", DAY_MS, "day"],
    ["31 d", 31 * DAY_MS, "day"],
    ["32 d", 32 * DAY_MS, "week"],
    ["93 d", 93 * DAY_MS, "week"],
    ["94 d", 94 * DAY_MS, "month"],
    ["366 d", 366 * DAY_MS, "month"],
    ["367 d", 367 * DAY_MS, "year"],
    ["10 years", 3_650 * DAY_MS, "year"],
  ])("%s", (_, length, stride) => {
    expect(strideOfRange(length)).toBe(stride);
  });
});

test("the grid keeps an instant on it and moves one beside it to its neighbour", () => {
  const noon = Date.parse("2028-02-29T12:00:00Z");
  expect(floorToGrid(noon, HOUR_MS)).toBe(noon);
  expect(ceilToGrid(noon, HOUR_MS)).toBe(noon);
  expect(floorToGrid(noon, DAY_MS)).toBe(Date.parse("2028-02-29T00:00:00Z"));
  expect(ceilToGrid(noon, DAY_MS)).toBe(Date.parse("2028-03-01T00:00:00Z"));
  expect(floorToGrid(noon - 1, HOUR_MS)).toBe(noon - HOUR_MS);
  expect(ceilToGrid(noon + 1, HOUR_MS)).toBe(noon + HOUR_MS);
});
