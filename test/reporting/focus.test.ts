import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { importPrices } from "../../src/pipeline/bill/import-prices.ts";
import type { Store } from "../../src/store/db/database.ts";
import { connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { loadRows, windowOf } from "../support/store.ts";

const [WORKSPACE, OTHER] = WORKSPACES;
const DAYS = ["2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04"] as const;
const AFTER = "2026-03-05";

interface GivenPrice {
  readonly sku?: string;
  readonly unitPrice: string;
  readonly currency?: string;
  readonly from?: string;
  readonly to?: string;
  readonly source?: string;
  readonly workspace?: string;
}

async function enterPrices(store: Store, given: readonly GivenPrice[]): Promise<void> {
  const lines = given.map((one, at) => ({
    where: `line ${at}`,
    price: {
      sku: one.sku ?? "traces",
      unitPrice: one.unitPrice,
      currency: one.currency ?? "USD",
      validFrom: one.from ?? "2026-01-01",
      validTo: one.to ?? null,
      source: one.source ?? null,
      workspace: one.workspace ?? null,
    },
  }));
  await importPrices(store, { file: "prices", lines, replace: true });
}

/** Traces of each of the four days by workspace; a day given as null is left unloaded, zero is loaded empty. */
async function enterUsage(
  { store, sourceId }: { store: Store; sourceId: number },
  usage: Readonly<Record<string, readonly (number | null)[]>>,
  settleAfterMs = 0,
): Promise<void> {
  for (const [workspaceId, days] of Object.entries(usage)) {
    for (const [at, traces] of days.entries()) {
      if (traces === null) continue;
      await loadRows(store, {
        sourceId,
        workspaceId,
        groupBy: "workspace",
        window: windowOf("day", DAYS[at] ?? "", DAYS[at + 1] ?? AFTER),
        rows: traces === 0 ? [] : [[DAYS[at] ?? "", workspaceId, traces]],
        settleAfterMs,
      });
    }
  }
}

const COSTS = `SELECT "x_UsageDate" AS day, "SubAccountId" AS workspace, "SkuId" AS sku, "BilledCost" AS cost,
                      "BillingCurrency" AS currency
               FROM reporting_detail.focus_1_4_cost_and_usage ORDER BY 2, 1, 3`;

describe("which price applies", () => {
  test("the view is empty without prices", async () => {
    const bench = await setupSource();
    await enterUsage(bench, { [WORKSPACE]: [5, 0, null, 7] });
    const client = await connectPlain(bench.url, "usage_reader");
    expect((await client.query(COSTS)).rows).toEqual([]);
  });

  test("each loaded day with traces costs the price of the day, and provisional days are marked", async () => {
    const bench = await setupSource();
    await enterUsage(bench, { [WORKSPACE]: [5, 0, null, 7] });
    await enterUsage(bench, { [OTHER]: [11] }, 10 * 365 * 86_400_000);
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
        ...{ day: DAYS[0], traces: "5", cost: "0.0025000000", final: "t", status: "ok" },
        words: words(5, WORKSPACE, DAYS[0], "0.0005"),
      },
      {
        ...{ day: DAYS[3], traces: "7", cost: "0.0042000000", final: "t", status: "ok" },
        words: words(7, WORKSPACE, DAYS[3], "0.0006"),
      },
      {
        ...{ day: DAYS[0], traces: "11", cost: "0.0055000000", final: "f", status: "provisional" },
        words: words(11, OTHER, DAYS[0], "0.0005"),
      },
    ]);
  });

  test("the most specific price of a SKU applies (workspace, source, all), and each SKU is a charge", async () => {
    const bench = await setupSource();
    await enterUsage(bench, { [WORKSPACE]: [1, 1], [OTHER]: [1] });
    await enterPrices(bench.store, [
      { unitPrice: "1" },
      { unitPrice: "2", source: "default", from: DAYS[0] },
      { unitPrice: "3", workspace: WORKSPACE, from: DAYS[1] },
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

  test("usage of another dimension than the workspace is not charged again", async () => {
    const bench = await setupSource();
    await enterUsage(bench, { [WORKSPACE]: [5] });
    for (const groupBy of ["project", "user", "api_key"] as const) {
      await loadRows(bench.store, {
        ...{ sourceId: bench.sourceId, workspaceId: WORKSPACE, groupBy },
        window: windowOf("day", DAYS[0], DAYS[1]),
        rows: [[DAYS[0], "00000000-0000-4000-8000-00000000000a", 5]],
      });
    }
    await enterPrices(bench.store, [{ unitPrice: "2" }]);
    const client = await connectPlain(bench.url);
    const { rows } = await client.query(
      `SELECT sum("BilledCost") AS cost FROM reporting_detail.focus_1_4_cost_and_usage`,
    );
    expect(rows).toEqual([{ cost: "10.0000000000" }]);
  });
});

test("costs are price times traces to the last digit for any price and count", async () => {
  const bench = await setupSource();
  const client = await connectPlain(bench.url, "usage_reader");
  const seed = Date.now() % 2 ** 31;
  const traces = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 1000 }), fc.maxSafeNat());
  const unscaled = fc.oneof(fc.bigInt(0n, 10_000_000n), fc.bigInt(0n, 10n ** 18n - 1n));
  const split = fc.integer({ min: 1, max: 3 });
  await fc.assert(
    fc.asyncProperty(
      fc.tuple(traces, traces, traces, traces),
      fc.tuple(unscaled, unscaled, unscaled),
      split,
      async (days, [before, after, fallback], at) => {
        // A load that empties a day would ask for a second one that agrees.
        await bench.store.transaction(({ client: owner }) =>
          owner.query(
            "DELETE FROM usage.dated_record; DELETE FROM usage.coverage; DELETE FROM usage.restatement",
          ),
        );
        await enterUsage(bench, { [WORKSPACE]: days, [OTHER]: days.toReversed() });
        await enterPrices(bench.store, [
          { unitPrice: decimal(before), workspace: WORKSPACE, to: DAYS[at] ?? "" },
          { unitPrice: decimal(after), workspace: WORKSPACE, from: DAYS[at] ?? "" },
          { unitPrice: decimal(fallback) },
        ]);
        const expected = [
          ...days.map((count, day) => [DAYS[day], count, day < at ? before : after] as const),
          ...days.toReversed().map((count, day) => [DAYS[day], count, fallback] as const),
        ].flatMap(([day, count, price]) => (count === 0 ? [] : [`${day} ${decimal(BigInt(count) * price)}`]));
        const { rows } = await client.query<{ day: string; cost: string }>(COSTS);
        expect(rows.map(({ day, cost }) => `${day} ${cost}`)).toEqual(expected);
        const total = expected.reduce(
          (sum, line) => sum + BigInt(line.split(" ")[1]?.replace(".", "") ?? 0),
          0n,
        );
        const sum = await client.query(
          `SELECT coalesce(sum("BilledCost"), 0)::numeric(38, 10) AS cost FROM reporting_detail.focus_1_4_cost_and_usage`,
        );
        expect(sum.rows).toEqual([{ cost: decimal(total) }]);
      },
    ),
    { seed, numRuns: 25 },
  );
});

/** An unscaled count of ten-billionths as a decimal. */
function decimal(unscaled: bigint): string {
  const digits = unscaled.toString().padStart(11, "0");
  return `${digits.slice(0, -10)}.${digits.slice(-10)}`;
}
