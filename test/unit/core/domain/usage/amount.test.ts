import { expect, test } from "vitest";
import {
  amountDrawn,
  amountOf,
  amountShown,
  amountText,
  centsShown,
  percentOf,
} from "../../../../../src/core/domain/usage/amount.ts";

test.each([
  [0, "0", "0"],
  [1_234, "1234", "1,234"],
  [123, "123", "123"],
  [1_234_567, "1234567", "1,234,567"],
  [-1_000, "-1000", "-1,000"],
  ["-100000.5", "-100000.5", "-100,000.5"],
  ["0.0000000001", "0.0000000001", "0.0000000001"],
  ["-0.05", "-0.05", "-0.05"],
  ["1234.5000", "1234.5", "1,234.5"],
  ["10.0101000000", "10.0101", "10.0101"],
  ["12345678.1234567891", "12345678.1234567891", "12,345,678.1234567891"],
  ["9007199254740993.1", "9007199254740993.1", "9,007,199,254,740,993.1"],
])("%s keeps every digit", (value, text, shown) => {
  expect([amountText(amountOf(value)), amountShown(amountOf(value))]).toEqual([text, shown]);
  expect(amountDrawn(amountOf(value))).toBe(Number(value));
});

test.each([
  ["6546.3158645", "6,546.32"],
  ["0", "0.00"],
  ["500", "500.00"],
  ["0.005", "0.01"],
  ["-0.995", "-1.00"],
  ["-1234.5", "-1,234.50"],
  // It is something, if little.
  ["0.0049", "0.0049"],
  ["999999.999", "1,000,000.00"],
])("%s in cents", (value, shown) => {
  expect(centsShown(amountOf(value))).toBe(shown);
});

test("amounts add up without rounding", () => {
  expect(amountText(amountOf("0.1") + amountOf("0.2"))).toBe("0.3");
  expect(amountText(amountOf("0.1") - amountOf("0.3"))).toBe("-0.2");
});

test.each([
  [1, 3, 33.3],
  [2, 3, 66.7],
  [1, 2_000, 0.1],
  [1, 2_001, 0],
  [5, 4, 125],
  [-1, 4, -25],
  [0, 4, 0],
  [4, 0, null],
  [1_253, 100_000, 1.3],
  [-1_253, 100_000, -1.3],
  [-1_249, 100_000, -1.2],
  [-1_250, 100_000, -1.3],
  [1_249, -100_000, -1.2],
])("%s is so many per cent of %s: %s", (part, whole, percent) => {
  expect(percentOf(amountOf(part), amountOf(whole))).toBe(percent);
});
