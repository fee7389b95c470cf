import { expect, test } from "vitest";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import { amountOf, amountText } from "../../../src/core/domain/usage/amount.ts";
import { STANDARD_UNITS } from "../../../src/core/domain/usage/meter.ts";
import { checkTotals } from "../../../src/core/pipeline/proof/check-totals.ts";
import type { SandboxHour } from "../../../src/features/standin/engine/sandboxes.ts";
import { createPrices } from "../../support/charges.ts";
import { ALL, fault, hoursOf, inLedger, inViews, setupSandboxes } from "../../support/sandboxes.ts";
import type { Bench } from "../../support/source.ts";

/** Standard units of sandboxes, which the platform may not give: unknown is not zero. */

const dayOf = (instant: number) => new Date(instant).toISOString().slice(0, 10);
const idOf = (by: "workspace" | "sandbox", one: SandboxHour) =>
  by === "workspace" ? one.workspaceId : one.resourceId;

/** `day workspace id measure` to millionths, or null if any hour of the day has no number. */
function expected(bench: Bench, by: "workspace" | "sandbox"): Map<string, number | null> {
  const sums = new Map<string, number | null>();
  for (const one of hoursOf(bench))
    for (const measure of STANDARD_UNITS) {
      const key = [dayOf(one.hour), one.workspaceId, idOf(by, one), measure].join(" ");
      const [sum, unit] = [sums.get(key) ?? (sums.has(key) ? null : 0), one[measure]];
      sums.set(key, sum === null || unit === null ? null : sum + unit);
    }
  return sums;
}

async function shown({ sql }: Bench, by: "workspace" | "sandbox") {
  const rows = await sql<{ key: string; millionths: string | null; status: string }>(
    `SELECT concat_ws(' ', usage_date, workspace_id, dimension_id, measure) AS key,
            trim_scale(quantity * 1000000)::text AS millionths, coverage_status AS status
     FROM reporting_detail.fct_other_usage_daily
     WHERE group_by = '${by}' AND measure LIKE '%standard_units' AND dimension_id IS NOT NULL`,
  );
  return new Map(rows.map((row) => [row.key, row]));
}

async function equalsLedger(bench: Bench): Promise<{ nulls: number; numbers: number }> {
  let [nulls, numbers] = [0, 0];
  for (const by of ["workspace", "sandbox"] as const) {
    const views = await shown(bench, by);
    const ledger = expected(bench, by);
    for (const [key, units] of ledger) {
      const row = views.get(key);
      expect([by, key, row?.millionths ?? null]).toEqual([by, key, units === null ? null : String(units)]);
      expect(row?.status === "not_available", key).toBe(units === null);
      if (units === null) nulls++;
      else numbers++;
    }
    for (const [key, row] of views) if (!ledger.has(key)) expect([key, row.millionths]).toEqual([key, "0"]);
  }
  return { nulls, numbers };
}

test.each([
  ["by the hour", {}],
  ["by resource", { workspaces: [0], standin: { scale: 25 } }],
])("a day has standard units only if each of its items has a number, %s", async (_, options) => {
  const bench = await setupSandboxes({ ...options, days: 9 });
  const { run } = await bench.sync(ALL);
  expect(run.failures).toEqual([]);
  const counts = await equalsLedger(bench);
  expect(counts.nulls).toBeGreaterThan(4);
  expect(counts.numbers).toBeGreaterThan(10);
  expect(await inViews(bench, "sandbox")).toEqual(inLedger(bench, "sandbox"));
});

test("a number that goes and comes again is unknown meanwhile, and a final change is a restatement", async () => {
  const bench = await setupSandboxes();
  await bench.sync(ALL);
  const { sandboxLedger } = bench.standin;
  const hours = hoursOf(bench).filter((one) => one.compute_standard_units !== null);
  const [first, last] = [hours[0], hours.at(-1)] as [SandboxHour, SandboxHour];
  const at = ({ resourceId, hour }: SandboxHour) => ({ resourceId, at: hour });
  sandboxLedger.hide({ ...at(last), measure: "compute_standard_units" });
  sandboxLedger.hide({ ...at(first), measure: "compute_standard_units" });
  await bench.sync(ALL);
  const range = { start: bench.dataStart, end: bench.dataStart + DAY_MS };
  await bench.fetch({ wanted: [{ meter: "sandboxes", stride: "day", range }], reprocess: "all" }, ALL);
  const restated = await bench.sql(
    "SELECT 1 FROM reporting_detail.usage_restatement WHERE measure = 'compute_standard_units' AND new_amount IS NULL",
  );
  expect(restated.length).toBe(dayOf(first.hour) === dayOf(bench.dataStart) ? 2 : 0);
  await equalsLedger(bench);
  sandboxLedger.change({ ...at(last), measure: "compute_standard_units", delta: 7 });
  await bench.sync(ALL);
  await equalsLedger(bench);
});

test("wrong standard units are logged with their place, and cost no other unit", async () => {
  const bench = await setupSandboxes({ workspaces: [0] });
  bench.standin.faults.script(fault("standard", 1000));
  const { run } = await bench.sync(ALL);
  expect(run.failures).toEqual([]);
  expect(bench.standin.faults.fired).toBeGreaterThan(0);
  for (const by of ["workspace", "sandbox"] as const)
    expect(await inViews(bench, by)).toEqual(inLedger(bench, by));
  const logged = bench.logs.find(({ code }) => code === "units_refused");
  expect(logged?.msg).toContain(
    'items.0.compute_standard_units is "-0.5", not a decimal from 0 on with at most six digits after the point',
  );
  const first = hoursOf(bench)[0] as SandboxHour;
  const row = (await shown(bench, "workspace")).get(
    `${dayOf(first.hour)} ${first.workspaceId} ${first.workspaceId} storage_standard_units`,
  );
  expect(row).toMatchObject({ millionths: null, status: "not_available" });
});

test("totals differ only where both sides have every number, and prove no standard unit", async () => {
  const bench = await setupSandboxes({ days: 45, workspaces: [0] });
  await bench.sync(ALL);
  const source = await bench.open(ALL);
  const good = await checkTotals(source, "all");
  expect(good.findings).toEqual([]);
  const [proof] = await bench.sql<{ lcu: string; standard: string }>(
    `SELECT count(proved_at) FILTER (WHERE measure = 'lcu') AS lcu,
            count(proved_at) FILTER (WHERE measure LIKE '%standard_units') AS standard
     FROM reporting_detail.fct_other_usage_daily WHERE meter = 'sandboxes'`,
  );
  expect(Number(proof?.lcu)).toBeGreaterThan(20);
  expect(Number(proof?.standard)).toBe(0);
  const unknown = new Set(
    hoursOf(bench)
      .filter((one) => one.storage_standard_units === null)
      .map((one) => one.resourceId),
  );
  const stable = hoursOf(bench).find(
    ({ hour, resourceId }) => hour > bench.today - 20 * DAY_MS && !unknown.has(resourceId),
  );
  const { resourceId, hour } = stable ?? (hoursOf(bench)[0] as SandboxHour);
  bench.standin.sandboxLedger.contradictions.push({
    resourceId,
    at: hour,
    measure: "storage_standard_units",
    delta: 250_000,
  });
  const { findings } = await checkTotals(source, "all");
  expect(findings.map((one) => one.measure)).toEqual(findings.map(() => "storage_standard_units"));
  expect(findings.length > 0).toBe(stable !== undefined);
});

test("a SKU charges known days to the last digit, and the bill names what it cannot charge", async () => {
  const bench = await setupSandboxes({ days: 9 });
  await bench.sync(ALL);
  const lines = () =>
    bench.sql<{ line: string; measure: string; quantity: string | null; cost: string | null }>(
      `SELECT line, measure, trim_scale(sum(quantity))::text AS quantity, trim_scale(sum(estimated_cost))::text AS cost
       FROM reporting.usage_bill_monthly WHERE measure LIKE '%standard_units' GROUP BY 1, 2 ORDER BY 2, 1`,
    );
  const known = (measure: (typeof STANDARD_UNITS)[number]) =>
    [...expected(bench, "workspace")]
      .filter(([key]) => key.endsWith(measure))
      .reduce((sum, [, units]) => sum + BigInt(units ?? 0), 0n);
  const amount = (millionths: bigint) => amountText(millionths * 10_000n);
  expect(await lines()).toEqual(
    STANDARD_UNITS.map((measure) => ({
      line: "counted_apart",
      measure,
      quantity: amount(known(measure)),
      cost: null,
    })),
  );
  const sku = { sku: "csu", measure: "compute_standard_units", from: "2020-01-01" } as const;
  await createPrices(bench.store, [{ ...sku, unitPrice: "0.0625" }]);
  const priced = await lines();
  expect(priced.find(({ line }) => line === "charge")).toEqual({
    line: "charge",
    measure: "compute_standard_units",
    quantity: amount(known("compute_standard_units")),
    cost: amountText(known("compute_standard_units") * 625n),
  });
  expect(priced.map(({ line }) => line)).toEqual(["charge", "not_available", "counted_apart"]);
  const [focus] = await bench.sql<{ cost: string }>(
    `SELECT sum("BilledCost") AS cost FROM reporting_detail.focus_1_4_cost_and_usage WHERE "SkuId" = 'csu'`,
  );
  expect(amountOf(focus?.cost ?? "")).toBe(known("compute_standard_units") * 625n);
});

test("after a day without a number, a volume tier is not certain", async () => {
  const bench = await setupSandboxes({ days: 9, workspaces: [0] });
  for (const days of [0, 3]) {
    const { resourceId, hour: at } = hoursOf(bench).find(
      ({ hour }) => hour >= bench.dataStart + days * DAY_MS,
    ) as SandboxHour;
    bench.standin.sandboxLedger.hide({ resourceId, at, measure: "compute_standard_units" });
  }
  await bench.sync(ALL);
  const tier = { sku: "csu", measure: "compute_standard_units", from: "2020-01-01" } as const;
  await createPrices(bench.store, [
    { ...tier, unitPrice: "0" },
    { ...tier, unitPrice: "1", fromQuantity: 1 },
  ]);
  const rows = await bench.sql<{ day: string; final: boolean; known: boolean }>(
    `SELECT u.usage_date::text AS day, c.is_final AS final,
            NOT EXISTS (SELECT FROM reporting_detail.fct_other_usage_daily b
                        WHERE b.group_by = 'workspace' AND b.measure = u.measure AND b.quantity IS NULL
                          AND b.usage_date < u.usage_date
                          AND date_trunc('month', b.usage_date) = date_trunc('month', u.usage_date)) AS known
     FROM reporting_detail.fct_other_usage_daily u
     JOIN reporting.fct_cost_workspace_daily c USING (usage_date, measure)
     WHERE u.group_by = 'workspace' AND u.measure = 'compute_standard_units' AND u.is_final ORDER BY 1`,
  );
  expect(rows.some(({ known }) => !known)).toBe(true);
  for (const { final, known } of rows) expect(final).toBe(known);
});
