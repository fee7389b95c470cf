import { describe, expect, test } from "vitest";
import { joinTiers, type PriceLine, textOf } from "../../../src/domain/bill/price.ts";

/** Lines of one file, from line 2 on. */
function linesOf(...prices: readonly Partial<PriceLine["price"]>[]): PriceLine[] {
  return prices.map((given, at) => ({
    where: `line ${at + 2}`,
    price: {
      sku: "traces",
      unitPrice: "1",
      currency: "USD",
      validFrom: "2026-01-01",
      validTo: null,
      source: null,
      workspace: null,
      ...given,
    },
  }));
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
      [{}, { fromQuantity: 5, currency: "EUR" }],
      'line 3, column "currency": EUR is not the currency of line 2, whose tier this is (USD)',
    ],
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
