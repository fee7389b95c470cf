import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS, type Stride, strideOfRange } from "../../../../../src/core/domain/time/stride.ts";

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
])("a range of %s has its stride", (_, length, stride) => {
  expect(strideOfRange(length)).toBe(stride);
});
