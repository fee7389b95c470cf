import { describe, expect, test } from "vitest";
import { dayOf, enterMonths, enterPrices } from "../support/charges.ts";
import { connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { loadRows, windowOf } from "../support/store.ts";

const [WORKSPACE, OTHER] = WORKSPACES;
/** The third day is not loaded. */
const USED = [{ [WORKSPACE]: { 0: 5, 3: 7 } }, { [WORKSPACE]: [2] }] as const;

const COSTS = `SELECT "x_UsageDate" AS day, "SubAccountId" AS workspace, "SkuId" AS sku, "BilledCost" AS cost,
                      "BillingCurrency" AS currency
               FROM reporting_detail.focus_1_4_cost_and_usage ORDER BY 2, 1, 3`;

describe("which price applies", () => {
  test("each loaded day with traces costs the price of the day, and provisional days are marked", async () => {
    const bench = await setupSource();
    await enterMonths(bench, ...USED);
    await loadRows(bench.store, {
      sourceId: bench.sourceId,
      workspaceId: OTHER,
      groupBy: "workspace",
      window: windowOf("day", dayOf(0), dayOf(1)),
      settleAfterMs: 10 * 365 * 86_400_000,
      rows: [[dayOf(0), OTHER, 11]],
    });
    await enterPrices(bench.store, [
      { unitPrice: "0.0005", to: "2026-03-04" },
      { unitPrice: "0.0006", from: "2026-03-04" },
    ]);
    const client = await connectPlain(bench.url, "usage_reader");
    const { rows } = await client.query(
      `SELECT "x_UsageDate" AS day, trim_scale("ConsumedQuantity") AS traces, "EffectiveCost" AS cost, "x_IsFinal" AS final,
              "x_CoverageStatus" AS status, "ChargeDescription" AS words
       FROM reporting_detail.focus_1_4_cost_and_usage ORDER BY "SubAccountId", 1`,
    );
    const words = (traces: number, workspace: string, day: string, price: string) =>
      `Estimate: ${traces} traces of ${workspace} on ${day} at ${price} USD each (traces)`;
    expect(rows).toEqual([
      {
        day: dayOf(0),
        traces: "5",
        cost: "0.0025000000",
        final: "t",
        status: "ok",
        words: words(5, WORKSPACE, dayOf(0), "0.0005"),
      },
      {
        day: dayOf(3),
        traces: "7",
        cost: "0.0042000000",
        final: "t",
        status: "ok",
        words: words(7, WORKSPACE, dayOf(3), "0.0006"),
      },
      {
        day: dayOf(0),
        traces: "11",
        cost: "0.0055000000",
        final: "f",
        status: "provisional",
        words: words(11, OTHER, dayOf(0), "0.0005"),
      },
    ]);
  });

  test("the most specific price of a SKU applies (workspace, source, all), and each SKU is a charge", async () => {
    const bench = await setupSource();
    await enterMonths(bench, { [WORKSPACE]: { 0: 1, 1: 1 }, [OTHER]: { 0: 1 } });
    await enterPrices(bench.store, [
      { unitPrice: "1" },
      { unitPrice: "2", source: "default", from: dayOf(0) },
      { unitPrice: "3", workspace: WORKSPACE, from: dayOf(1) },
      { unitPrice: "0.5", sku: "retention", currency: "EUR" },
    ]);
    const client = await connectPlain(bench.url, "usage_reader");
    const { rows } = await client.query<Record<string, string>>(COSTS);
    expect(
      rows.map((row) => `${row.day} ${row.workspace?.slice(-1)} ${row.sku} ${row.cost} ${row.currency}`),
    ).toEqual([
      "2026-03-01 1 retention 0.5000000000 EUR",
      "2026-03-01 1 traces 2.0000000000 USD",
      "2026-03-02 1 retention 0.5000000000 EUR",
      "2026-03-02 1 traces 3.0000000000 USD",
      "2026-03-01 2 retention 0.5000000000 EUR",
      "2026-03-01 2 traces 2.0000000000 USD",
    ]);
  });
});
