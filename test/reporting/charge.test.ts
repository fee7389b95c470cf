import fc from "fast-check";
import { expect, test } from "vitest";
import { anyPrices, anyUsage, clearUsage } from "../support/any-charges.ts";
import { enterMonths, enterPrices, expectedCharges, type GivenPrice } from "../support/charges.ts";
import { connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";

const [WORKSPACE, OTHER] = WORKSPACES;

const CHARGES = `SELECT usage_date AS day, workspace_id AS workspace, sku, tier, traces, cost, currency, is_final AS final,
                        coverage_status AS status
                 FROM usage.charge ORDER BY 1, 2, 3, 4`;

test("a free allowance and a graduated price: each trace costs what its place in the month says", async () => {
  const bench = await setupSource();
  // 100 traces are free, the next 100 cost 2, all others 1.
  const tiers: GivenPrice[] = [
    { unitPrice: "0" },
    { unitPrice: "2", fromQuantity: 100 },
    { unitPrice: "1", fromQuantity: 200 },
  ];
  expect(await enterPrices(bench.store, tiers)).toMatchObject({ added: 1 });
  expect(await enterPrices(bench.store, tiers.toReversed())).toMatchObject({ added: 0, unchanged: 1 });
  await enterMonths(bench, { [WORKSPACE]: { 0: 60, 1: 150, 31: 30 }, [OTHER]: { 0: 70 } });
  const client = await connectPlain(bench.url);
  const { rows } = await client.query<Record<string, string>>(CHARGES);
  expect(
    rows.map((row) => `${row.day} ${row.workspace?.slice(-1)} ${row.tier} ${row.traces} ${row.cost}`),
  ).toEqual([
    "2026-03-01 1 1 60 0.0000000000",
    "2026-03-01 2 1 40 0.0000000000",
    "2026-03-01 2 2 30 60.0000000000",
    "2026-03-02 1 2 70 140.0000000000",
    "2026-03-02 1 3 80 80.0000000000",
    // April counts from 0 again.
    "2026-04-01 1 1 30 0.0000000000",
  ]);
  expect(await enterPrices(bench.store, tiers.slice(0, 2))).toMatchObject({ added: 1, removed: 1 });
});

test("charges equal an independent recomputation to the last digit, and every trace is charged once", async () => {
  const bench = await setupSource();
  const client = await connectPlain(bench.url);
  const seed = Date.now() % 2 ** 31;
  await fc.assert(
    fc.asyncProperty(anyUsage, anyPrices, async (given, priced) => {
      await clearUsage(client);
      await enterMonths(bench, given);
      await enterPrices(bench.store, priced);
      const { rows } = await client.query<Record<string, string>>(CHARGES);
      const charges = rows.map((row) =>
        [row.day, row.workspace, row.sku, row.tier, row.traces, row.cost, row.currency].join(" "),
      );
      expect(charges).toEqual(expectedCharges(given, priced));
      const { rows: lost } = await client.query(`
        SELECT usage_date, workspace_id, c.sku FROM usage.charge c
        JOIN reporting.fct_usage_workspace_daily u USING (usage_date, workspace_id)
        GROUP BY usage_date, workspace_id, c.sku, u.traces HAVING sum(c.traces) <> u.traces`);
      expect(lost).toEqual([]);
    }),
    { seed, numRuns: 15 },
  );
});

test("a day that is not loaded makes the charges of later days of its month provisional, where they depend on it", async () => {
  const bench = await setupSource();
  const tiers = (countedOver: "source" | "workspace"): GivenPrice[] => [
    { unitPrice: "0", countedOver },
    { unitPrice: "2", fromQuantity: 100 },
  ];
  const days = { 3: 1, 5: 1, 31: 1 };
  await enterMonths(bench, { [WORKSPACE]: { 4: 1, ...days }, [OTHER]: days }, { [OTHER]: [4] });
  const client = await connectPlain(bench.url);
  const read = async () => {
    const { rows } = await client.query<Record<string, string>>(CHARGES);
    return rows.map((row) => `${row.day?.slice(5)} ${row.workspace?.slice(-1)} ${row.final} ${row.status}`);
  };
  const before = ["03-04 1 t ok", "03-04 2 t ok", "03-05 1 t ok"];
  const april = ["04-01 1 t ok", "04-01 2 t ok"];
  await enterPrices(bench.store, tiers("source"));
  expect(await read()).toEqual([...before, "03-06 1 f provisional", "03-06 2 f provisional", ...april]);
  await enterPrices(bench.store, tiers("workspace"));
  expect(await read()).toEqual([...before, "03-06 1 t ok", "03-06 2 f provisional", ...april]);
});

test("without tiers no window over the history is computed", async () => {
  const bench = await setupSource();
  await enterPrices(bench.store, [{ unitPrice: "1" }]);
  await enterMonths(bench, { [WORKSPACE]: { 3: 1 } });
  const client = await connectPlain(bench.url);
  const windows = async () => {
    const { rows } = await client.query<Record<string, string>>(
      "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM usage.charge WHERE usage_date = '2026-03-04'",
    );
    const lines = rows.map((row) => row["QUERY PLAN"] ?? "").filter((line) => line.includes("WindowAgg"));
    return { all: lines.length, run: lines.filter((line) => !line.includes("never executed")).length };
  };
  expect(await windows()).toMatchObject({ run: 0 });
  await enterPrices(bench.store, [{ unitPrice: "1" }, { unitPrice: "2", fromQuantity: 1 }]);
  expect((await windows()).run).toBeGreaterThan(0);
});
