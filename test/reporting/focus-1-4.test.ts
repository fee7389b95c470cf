import type pg from "pg";
import { describe, expect, test } from "vitest";
import { createPrices } from "../support/charges.ts";
import { breachesOf, factsOf } from "../support/focus.ts";
import { WORKSPACES } from "../support/reporting.ts";
import { COST, close, fill, loadDay, loadMonth, PERIOD, setup } from "./focus/bench.ts";

const [WORKSPACE, OTHER] = WORKSPACES;
const charges = async (client: pg.Client) =>
  (
    await client.query<Record<string, string>>(`
      SELECT to_char("x_BillingMonth", 'YYYY-MM') AS month, "x_UsageDate" AS day, right("SubAccountId", 1) AS of,
             coalesce("ChargeClass", '-') AS class, trim_scale("PricingQuantity") AS traces,
             trim_scale("ContractedUnitPrice") AS price, trim_scale("BilledCost") AS cost
      FROM reporting_detail.focus_1_4_cost_and_usage ORDER BY "x_BillingMonth", 2, 3, "ContractedUnitPrice"`)
  ).rows.map((row) => Object.values(row).join(" "));

describe("FOCUS", () => {
  const everything = factsOf("CostAndUsage").map(({ column }) => column);

  test("both views have every column of the model and break nothing, open, closed and corrected", async () => {
    const bench = await setup();
    await fill(bench);
    const check = async () => [
      ...(await breachesOf(bench.reader, { ...COST, expected: everything })),
      ...(await breachesOf(bench.reader, PERIOD)),
    ];
    expect(everything).toHaveLength(65);
    expect(await check()).toEqual([]);
    await close(bench, 0);
    await loadDay(bench, "2026-03-01", WORKSPACE, 3, "before");
    expect(await check()).toEqual([]);
    expect(await conservation(bench.owner)).toEqual([]);
    const { rows } = await bench.reader.query(
      `SELECT array_agg(attname::text ORDER BY attnum) AS names FROM pg_attribute WHERE attrelid = $1::regclass AND attname !~ '^x_'`,
      [COST.table],
    );
    expect(rows[0].names).toBe(`{${everything.join(",")}}`);
  });

  test("a closed month keeps its charges; what changes later is a correction in the first open month", async () => {
    const bench = await setup();
    await createPrices(bench.store, [{ unitPrice: "2" }]);
    await loadMonth(bench, 0, WORKSPACE, [
      ["2026-03-01", WORKSPACE, 5],
      ["2026-03-02", WORKSPACE, 7],
    ]);
    await loadMonth(bench, 0, OTHER, [["2026-03-01", OTHER, 1]]);
    await loadMonth(bench, 1, WORKSPACE, [["2026-04-01", WORKSPACE, 10]]);
    await loadMonth(bench, 1, OTHER, []);
    const march = [
      "2026-03 2026-03-01 1 - 5 2 10",
      "2026-03 2026-03-01 2 - 1 2 2",
      "2026-03 2026-03-02 1 - 7 2 14",
    ];
    expect(await charges(bench.reader)).toEqual([...march, "2026-04 2026-04-01 1 - 10 2 20"]);

    await close(bench, 0);
    expect(await charges(bench.reader)).toEqual([...march, "2026-04 2026-04-01 1 - 10 2 20"]);
    await loadDay(bench, "2026-03-01", WORKSPACE, 4);
    await loadDay(bench, "2026-03-03", OTHER, 6);
    const april = [
      "2026-04 2026-03-01 1 Correction -1 2 -2",
      "2026-04 2026-03-03 2 Correction 6 2 12",
      "2026-04 2026-04-01 1 - 10 2 20",
    ];
    expect(await charges(bench.reader)).toEqual([...march, ...april]);
    expect(await conservation(bench.owner)).toEqual([]);

    await close(bench, 1);
    expect(await charges(bench.reader)).toEqual([...march, ...april]);
    await loadDay(bench, "2026-03-03", OTHER, 5);
    await createPrices(bench.store, [{ unitPrice: "3" }]);
    const may = [
      "2026-05 2026-03-01 1 Correction -4 2 -8",
      "2026-05 2026-03-01 1 Correction 4 3 12",
      "2026-05 2026-03-01 2 Correction -1 2 -2",
      "2026-05 2026-03-01 2 Correction 1 3 3",
      "2026-05 2026-03-02 1 Correction -7 2 -14",
      "2026-05 2026-03-02 1 Correction 7 3 21",
      "2026-05 2026-03-03 2 Correction -6 2 -12",
      "2026-05 2026-03-03 2 Correction 5 3 15",
      "2026-05 2026-04-01 1 Correction -10 2 -20",
      "2026-05 2026-04-01 1 Correction 10 3 30",
    ];
    expect(await charges(bench.reader)).toEqual([...march, ...april, ...may]);
    expect(await conservation(bench.owner)).toEqual([]);
    expect(await breachesOf(bench.reader, { ...COST, expected: everything })).toEqual([]);
    await createPrices(bench.store, []);
    await createPrices(bench.store, [{ unitPrice: "2" }]);
    expect((await charges(bench.reader)).filter((line) => line.startsWith("2026-05"))).toEqual([
      "2026-05 2026-03-03 2 Correction -1 2 -2",
    ]);
    const { rows } = await bench.reader.query(
      `SELECT to_char("x_BillingMonth", 'MM') || ' ' || "BillingPeriodStatus" || ' ' || "x_SourcesClosed" AS period
       FROM ${PERIOD.table} WHERE "x_BillingMonth" < '2026-06-01' ORDER BY 1`,
    );
    expect(rows.map(({ period }) => period)).toEqual(["03 Closed 1", "04 Closed 1", "05 Open 0"]);
  });

  test("what a close left out is charged in the next month", async () => {
    const bench = await setup();
    await createPrices(bench.store, [{ unitPrice: "2" }]);
    await loadMonth(bench, 0, WORKSPACE, [["2026-03-01", WORKSPACE, 5]]);
    await loadMonth(bench, 0, OTHER, [["2026-03-01", OTHER, 1]]);
    await close(bench, 0, [OTHER]);
    expect(await charges(bench.reader)).toEqual([
      "2026-03 2026-03-01 1 - 5 2 10",
      "2026-04 2026-03-01 2 Correction 1 2 2",
    ]);
    await loadMonth(bench, 1, WORKSPACE, []);
    await loadMonth(bench, 1, OTHER, []);
    await close(bench, 1, [OTHER]);
    expect(await charges(bench.reader)).toEqual([
      "2026-03 2026-03-01 1 - 5 2 10",
      "2026-05 2026-03-01 2 Correction 1 2 2",
    ]);
    expect(await conservation(bench.owner)).toEqual([]);
  });
});

async function conservation(client: pg.Client) {
  const { rows } = await client.query(`
    SELECT "x_SourceId", "x_UsageDate", "SubAccountId", "SkuId", "BillingCurrency", sum(cost) AS difference
    FROM (
      SELECT "x_SourceId", "x_UsageDate", "SubAccountId", "SkuId", "BillingCurrency", "BilledCost" AS cost
      FROM ${COST.table}
      UNION ALL
      SELECT w.slug, c.usage_date, w.workspace_id, c.sku, c.currency, -c.cost
      FROM usage.charge c JOIN usage.shown_workspace w ON w.entity_id = c.workspace_id
    ) t
    GROUP BY 1, 2, 3, 4, 5 HAVING sum(cost) <> 0
    UNION ALL
    SELECT "InvoiceIssuerName", "x_BillingMonth", NULL, NULL, NULL, NULL
    FROM ${COST.table} c
    WHERE NOT EXISTS (
      SELECT FROM ${PERIOD.table} p
      WHERE p."BillingPeriodStart" = c."BillingPeriodStart" AND p."InvoiceIssuerName" = c."InvoiceIssuerName"
    )`);
  return rows;
}
