import { expect, test } from "vitest";
import { describeCosts, describeUnpriced, type UnpricedUsage } from "../../../src/domain/bill/price.ts";

const DAYS: UnpricedUsage = {
  ...{ prices: 2, days: 3, traces: 1200, firstDay: "2026-03-01", lastDay: "2026-03-09" },
};
const ONE: UnpricedUsage = { ...DAYS, days: 1, lastDay: "2026-03-01" };
const NONE: UnpricedUsage = { ...DAYS, days: 0, traces: 0, firstDay: null, lastDay: null };

test("days without a price are named with their traces, and every day that has one needs no word", () => {
  expect(describeUnpriced(DAYS)).toBe(
    "3 days with 1,200 traces (2026-03-01 to 2026-03-09) have no price, so the estimated costs leave them out. See reporting.usage_unpriced_daily.",
  );
  expect(describeUnpriced(ONE)).toBe(
    "1 day with 1,200 traces (2026-03-01) has no price, so the estimated costs leave them out. See reporting.usage_unpriced_daily.",
  );
  expect(describeUnpriced(NONE)).toBeUndefined();
});

test("costs say what they leave out, and are none without prices", () => {
  expect(describeCosts(DAYS)).toBe(describeUnpriced(DAYS));
  expect(describeCosts(NONE)).toBe("Every loaded day with usage has a price.");
  expect(describeCosts({ ...NONE, prices: 0 })).toBe("No prices are imported, so no costs are estimated.");
  expect(describeCosts({ ...DAYS, prices: 0 })).toBe("No prices are imported, so no costs are estimated.");
});
