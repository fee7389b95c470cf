import { expect, test } from "vitest";
import { createPrices } from "../support/charges.ts";
import { addSource, WORKSPACES } from "../support/reporting.ts";
import { type Bench, close, loadDay, loadMonth, setup } from "./focus/bench.ts";

const [WORKSPACE, OTHER] = WORKSPACES;

async function setupClosed() {
  const bench = await setup();
  await createPrices(bench.store, [{ unitPrice: "1" }, { unitPrice: "2", fromQuantity: 10 }]);
  await loadMonth(bench, 0, WORKSPACE, [
    ["2026-03-01", WORKSPACE, 6],
    ["2026-03-02", WORKSPACE, 6],
    ["2026-03-03", WORKSPACE, 3],
  ]);
  await loadMonth(bench, 0, OTHER, []);
  await close(bench, 0);
  return bench;
}

async function corrections({ reader }: Bench) {
  const { rows } = await reader.query<Record<string, string>>(`
    SELECT to_char("x_BillingMonth", 'MM') AS month, to_char("x_UsageDate", 'MM-DD') AS day, trim_scale("PricingQuantity") AS traces,
           trim_scale("ContractedUnitPrice") AS price, "x_IsFinal" AS final, "x_CoverageStatus" AS status
    FROM reporting_detail.focus_1_4_cost_and_usage WHERE "ChargeClass" = 'Correction' ORDER BY 1, 2, 4`);
  return rows.map((row) => Object.values(row).join(" "));
}

async function unload({ owner }: Bench) {
  await owner.query(`
    UPDATE usage.coverage c
    SET period_start = '2026-03-02T00:00Z', traced = traced * tstzmultirange(tstzrange('2026-03-02T00:00Z', NULL))
    FROM usage.trace_scope s
    WHERE s.scope_id = c.scope_id AND s.group_by = 'workspace' AND c.period_start = '2026-03-01T00:00Z'`);
  await owner.query("DELETE FROM usage.dated_record WHERE bucket_start = '2026-03-01'");
}

test("a closed day that is not loaded now has no correction, and later days of its tiers none that is final", async () => {
  const bench = await setupClosed();
  await unload(bench);
  const shifted = [
    "03-02 2 1 f provisional",
    "03-02 -2 2 f provisional",
    "03-03 3 1 f provisional",
    "03-03 -3 2 f provisional",
  ];
  expect(await corrections(bench)).toEqual(shifted.map((line) => `04 ${line}`));

  await loadMonth(bench, 1, WORKSPACE, []);
  await loadMonth(bench, 1, OTHER, []);
  await close(bench, 1);
  expect(await corrections(bench)).toEqual(shifted.map((line) => `05 ${line}`));

  await loadDay(bench, "2026-03-01", WORKSPACE, 6);
  await loadDay(bench, "2026-03-01", OTHER, 0);
  expect(await corrections(bench)).toEqual([]);
});

test("a month is closed when the issuer's last source closes it, and until then has its charges of now", async () => {
  const bench = await setupClosed();
  const second = "00000000-0000-4000-8000-000000000003";
  const sourceId = await addSource(bench.store, { slug: "second", workspaceIds: [second] });
  const other = { ...bench, sourceId };
  await loadMonth(other, 0, second, [["2026-03-05", second, 4]]);
  await loadDay(bench, "2026-03-03", WORKSPACE, 1);
  const rows = async () => {
    const { rows: all } = await bench.reader.query<{ row: string }>(
      `SELECT concat_ws(' ', "x_SourceId", to_char("x_BillingMonth", 'MM'), to_char("x_UsageDate", 'MM-DD'), coalesce("ChargeClass", '-'),
                        trim_scale("BilledCost"), (SELECT "BillingPeriodStatus" FROM reporting_detail.focus_1_4_billing_period p
                          WHERE p."BillingPeriodStart" = c."BillingPeriodStart")) AS row
       FROM reporting_detail.focus_1_4_cost_and_usage c WHERE "x_UsageDate" = ANY ('{2026-03-03,2026-03-05}') ORDER BY 1`,
    );
    return all.map(({ row }) => row);
  };
  // Of 12 traces before, the 10th is the last of the first tier.
  expect(await rows()).toEqual(["default 03 03-03 - 2 Open", "second 03 03-05 - 4 Open"]);
  await close(other, 0);
  expect(await rows()).toEqual([
    "default 03 03-03 - 6 Closed",
    "default 04 03-03 Correction -4 Open",
    "second 03 03-05 - 4 Closed",
  ]);
});
