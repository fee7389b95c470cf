import { expect, test } from "vitest";
import { priceUnloaded, type TracePrice } from "../../../../src/features/costs/price-unloaded.ts";

const unloaded = (workspaceId: string, traces: number, longlived: number | null = null) => ({
  ...{ workspaceId, name: null, traces, longlived },
});

const traces: TracePrice = {
  measure: "traces",
  currency: "USD",
  countedOver: "source",
  tiers: [
    { from: 0, to: 100, unitPrice: "0" },
    { from: 100, to: null, unitPrice: "0.004" },
  ],
  charged: 40,
};

const costsOf = (...given: Parameters<typeof priceUnloaded>) =>
  priceUnloaded(...given).map(({ costs }) =>
    costs.map(({ currency, cost }) => `${cost} ${currency}`).join(", "),
  );

test("a price over the source goes on where the charged usage ends, one workspace after the other", () => {
  expect(costsOf([unloaded("a", 100), unloaded("b", 10)], [traces])).toEqual(["0.16 USD", "0.04 USD"]);
});

test("a price by workspace begins anew for each of them", () => {
  const each: TracePrice = { ...traces, countedOver: "workspace" };
  expect(costsOf([unloaded("a", 150), unloaded("b", 100)], [each])).toEqual(["0.2 USD", "0 USD"]);
});

test("a price by retention tier is charged where the tiers are known, and leaves the cost unknown elsewhere", () => {
  const long: TracePrice = { ...traces, measure: "longlived", charged: 1_000 };
  const short: TracePrice = { ...traces, measure: "shortlived", currency: "EUR", charged: 1_000 };
  expect(costsOf([unloaded("a", 110, 10), unloaded("b", 110)], [long, short])).toEqual([
    "0.04 USD, 0.4 EUR",
    "",
  ]);
  expect(costsOf([unloaded("a", 110)], [])).toEqual([""]);
  // The other traces have no price.
  for (const alone of [long, short]) expect(costsOf([unloaded("a", 110, 10)], [alone])).toEqual([""]);
});
