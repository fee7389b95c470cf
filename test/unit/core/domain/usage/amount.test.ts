import fc from "fast-check";
import { expect, test } from "vitest";
import {
  amountDrawn,
  amountOf,
  amountShown,
  amountText,
  centsShown,
  minorDigits,
  percentOf,
  roundedParts,
  roundedTo,
} from "../../../../../src/core/domain/usage/amount.ts";
import { seed, times } from "../../../../support/drawn.ts";

const SEED = seed();

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

test.each([
  ["JPY", "1234.5", "1,235"],
  ["KWD", "0.0005", "0.001"],
  ["USD", "1234.5", "1,234.50"],
])("%s of %s", (currency, value, shown) => {
  expect(centsShown(amountOf(value), currency)).toBe(shown);
});

test("parts in cents go to those that lost the most", () => {
  const parts = ["629.044", "629.043", "629.034"].map(amountOf);
  expect(roundedParts("USD", parts).map(amountText)).toEqual(["629.05", "629.04", "629.03"]);
});

test(`parts in the smallest unit add up to their rounded sum, and none is a unit away (seed ${SEED})`, () => {
  const part = fc.bigInt({ min: -(10n ** 15n), max: 10n ** 15n });
  fc.assert(
    fc.property(
      fc.constantFrom("USD", "JPY", "KWD"),
      fc.array(part, { maxLength: 40 }),
      (currency, parts) => {
        const unit = 10n ** BigInt(10 - minorDigits(currency));
        const rounded = roundedParts(currency, parts);
        const sum = (amounts: readonly bigint[]) => amounts.reduce((all, one) => all + one, 0n);
        expect(sum(rounded)).toBe(roundedTo(currency, sum(parts)));
        rounded.forEach((one, n) => {
          const away = one - (parts[n] as bigint);
          expect(one % unit).toBe(0n);
          expect(away < unit && away > -unit).toBe(true);
        });
      },
    ),
    { seed: SEED, numRuns: times(200) },
  );
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
