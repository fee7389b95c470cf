import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  isForSame,
  joinTiers,
  measurePriceProblem,
  overlaps,
  type Price,
  type PriceLine,
  parseUnitPrice,
  scopeOf,
  textOf,
} from "../../../../src/features/costs/price.ts";

const PRICE: Price = {
  sku: "traces",
  unitPrice: "1",
  currency: "USD",
  source: null,
  workspace: null,
  validFrom: "2026-01-01",
  validTo: null,
};

describe("parseUnitPrice", () => {
  test.each([
    ["-0.01", "is negative"],
    ["100000000", "more than 8 digits before the point"],
    ["1e8", "more than 8 digits before the point"],
    ["0.00000000001", "more than 10 digits after the point"],
    ["0,0005", "not a decimal number"],
    ["", "not a decimal number"],
    ["NaN", "not a decimal number"],
    ["0x10", "not a decimal number"],
  ])("%s is refused: %s", (text, why) => {
    expect(parseUnitPrice(text)).toEqual({ why: expect.stringContaining(why) });
  });

  test("an exponent moves the point and changes no digit", () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 0n, max: 10n ** 18n - 1n }),
        fc.integer({ min: -10, max: 4 }),
        (unscaled, shift) => {
          const fits = unscaled < 10n ** BigInt(8 - shift);
          const result = parseUnitPrice(`${unscaled}e${shift}`);
          if (!fits) {
            expect(result).toHaveProperty("why");
            return;
          }
          if ("why" in result) throw new Error(result.why);
          const [whole = "", fraction = ""] = result.price.split(".");
          expect(BigInt(whole + fraction.padEnd(Math.max(-shift, 0), "0"))).toBe(
            unscaled * 10n ** BigInt(Math.max(shift, 0)),
          );
        },
      ),
    );
  });
});

test.each([
  [["2026-01-01", "2026-02-01"], ["2026-02-01", null], false],
  [["2026-01-01", "2026-02-02"], ["2026-02-01", null], true],
  [["2026-01-01", null], ["2030-01-01", "2030-01-02"], true],
  [["2026-01-01", null], ["2020-01-01", "2026-01-01"], false],
  [["2026-01-01", null], ["2020-01-01", "2026-01-02"], true],
] as const)("%j and %j share a day: %s", (one, other, share) => {
  const price = ([validFrom, validTo]: readonly [string, string | null]) => ({
    ...PRICE,
    validFrom,
    validTo,
  });
  expect(overlaps(price(one), price(other))).toBe(share);
  expect(overlaps(price(other), price(one))).toBe(share);
});

describe("prices of a scope", () => {
  const of = (source: string | null, workspace: string | null = null) => ({ ...PRICE, source, workspace });

  test.each([
    [of(null), of("eu"), true],
    [of("eu"), of("eu"), true],
    [of("eu"), of("us"), false],
    [of("eu"), of("eu", "w"), true],
    [of("eu", "w"), of("eu", "w"), true],
    [of("eu", "w"), of("eu", "v"), false],
    [of("eu", "w"), of("us", "w"), false],
    [of(null), of("eu", "w"), true],
  ])("%j and %j may apply to the same usage: %s", (one, other, may) => {
    expect(isForSame(one, other)).toBe(may);
    expect(isForSame(other, one)).toBe(may);
  });

  test("have one scope where SKU, source and workspace are the same, whatever they cost and when", () => {
    expect(scopeOf({ ...of("eu", "w"), unitPrice: "2", validFrom: "2020-01-01" })).toBe(
      scopeOf(of("eu", "w")),
    );
    const others = [of(null), of("eu"), of("eu", "w"), of("w", "eu"), { ...PRICE, sku: "seats" }];
    expect(new Set(others.map(scopeOf)).size).toBe(others.length);
  });
});

test("a price of units has at most four digits after the point, so that each cost has ten; other prices have ten", () => {
  for (const measure of ["lcu", "lsu"] as const) {
    expect(measurePriceProblem("1.2345", measure)).toBeUndefined();
    expect(measurePriceProblem("12", measure)).toBeUndefined();
    expect(measurePriceProblem("1.23456", measure)).toMatch(/^has more than 4 digits after the point/);
  }
  expect(measurePriceProblem("0.0123456789", "traces")).toBeUndefined();
});

function linesOf(...prices: readonly Partial<PriceLine["price"]>[]): PriceLine[] {
  return prices.map((given, at) => ({ where: `line ${at + 2}`, price: { ...PRICE, ...given } }));
}

describe("joinTiers", () => {
  test("makes one price of its lines, in any order, and leaves other scopes and days apart", () => {
    const { joined, problems } = joinTiers(
      linesOf(
        { fromQuantity: 200, unitPrice: "3" },
        { fromQuantity: 100, unitPrice: "2", countedOver: "workspace" },
        { unitPrice: "1" },
        { unitPrice: "9", source: "default" },
        { unitPrice: "8", validFrom: "2025-01-01", validTo: "2026-01-01" },
      ),
    );
    expect(problems).toEqual([]);
    expect(joined).toMatchObject([
      {
        where: "line 4",
        price: {
          unitPrice: "1",
          countedOver: "workspace",
          tiers: [
            { fromQuantity: 100, unitPrice: "2" },
            { fromQuantity: 200, unitPrice: "3" },
          ],
        },
      },
      { price: { unitPrice: "9", countedOver: "source", tiers: [] } },
      { price: { unitPrice: "8", tiers: [] } },
    ]);
    expect(new Set(joined.map(({ price }) => textOf(price))).size).toBe(3);
  });

  test.each([
    [
      [{}, { fromQuantity: 5 }, { fromQuantity: 5 }],
      'line 4, column "from_quantity": 5 is that of line 3 too',
    ],
    [
      [{}, { fromQuantity: 5, sku: "other" }],
      'line 3, column "from_quantity": no line has the price of the traces before 5. Add one with from_quantity 0',
    ],
  ] as const)("names what is wrong with %j", (prices, problem) => {
    expect(joinTiers(linesOf(...prices)).problems).toEqual([expect.stringContaining(problem)]);
  });
});

test("prices have one text only if they cost the same", () => {
  const [price] = joinTiers(linesOf({}, { fromQuantity: 5, unitPrice: "2" })).joined;
  if (price === undefined) throw new Error("not joined");
  const one = price.price;
  const others = [
    { ...one, sku: "other" },
    { ...one, source: "eu" },
    { ...one, workspace: "w" },
    { ...one, measure: "longlived" as const },
    { ...one, unitPrice: "3" },
    { ...one, currency: "EUR" },
    { ...one, validFrom: "2026-01-02" },
    { ...one, validTo: "2027-01-01" },
    { ...one, countedOver: "workspace" as const },
    { ...one, tiers: [] },
    { ...one, tiers: [{ fromQuantity: 6, unitPrice: "2" }] },
    { ...one, tiers: [{ fromQuantity: 5, unitPrice: "3" }] },
  ];
  expect(new Set([one, ...others].map(textOf)).size).toBe(1 + others.length);
  expect(textOf({ ...one, measure: "traces" })).toBe(textOf(one));
});
