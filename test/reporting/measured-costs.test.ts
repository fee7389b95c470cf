import { expect, test } from "vitest";
import { monthAt } from "../../src/core/domain/months/month.ts";
import { closePeriod } from "../../src/features/close/close-period.store.ts";
import { KEEP_PROOF } from "../support/by-hand.ts";
import { createPrices, DAYS, dayOf, type GivenPrice } from "../support/charges.ts";
import { client, lines, setUpEachSource, sourceId, store } from "../support/each-source.ts";
import { WORKSPACES } from "../support/reporting.ts";
import { loadDeploymentRows, loadRows, windowOf } from "../support/store.ts";

const [WORKSPACE] = WORKSPACES;

setUpEachSource();

const [A, B] = ["0a", "0b"].map((last) => `00000000-0000-4000-8000-0000000000${last}`) as [string, string];
const DAY = dayOf(2);
const MONTHS = windowOf("day", dayOf(0), dayOf(DAYS));

interface Used {
  readonly traces: number;
  readonly longlived: number;
  readonly measures: readonly [nodes: number, runs: number, uptime: number];
}

/** Loads a time of both workspaces in every meter. The first one has usage on the day, if that lies within. */
async function create(
  groupBy: "workspace" | "project" | "user",
  used: Readonly<Record<string, Used>>,
  window = MONTHS,
): Promise<void> {
  for (const workspaceId of WORKSPACES) {
    const response = { sourceId, groupBy, workspaceId, window };
    const ids = workspaceId === WORKSPACE ? Object.entries(used) : [];
    const rows = (of: (used: Used) => number) =>
      ids.map(([id, one]) => [DAY, id, of(one)] as const).filter(([, , count]) => count > 0);
    await loadRows(store, { ...response, rows: rows(({ traces }) => traces) });
    await loadRows(store, { ...response, meter: "longlived", rows: rows(({ longlived }) => longlived) });
    await loadDeploymentRows(store, {
      ...response,
      rows: ids.map(([id, { measures }]) => [DAY, id, measures]),
    });
  }
}

test("FOCUS has a SKU, a meter and a unit for each measure, and base traces are priced once", async () => {
  await create("workspace", { [WORKSPACE]: { traces: 100, longlived: 30, measures: [7, 2, 3600] } });
  await createPrices(store, [
    { sku: "base", unitPrice: "0.5" },
    { sku: "extended", unitPrice: "4", measure: "longlived" },
    { sku: "nodes", unitPrice: "0.1", measure: "nodes_executed" },
    { sku: "runs", unitPrice: "0.01", measure: "agent_runs" },
    { sku: "uptime", unitPrice: "0.001", measure: "agent_uptime_seconds" },
  ]);
  expect(
    await lines(`SELECT "SkuId", "SkuMeter", trim_scale("ConsumedQuantity"), "ConsumedUnit", "PricingUnit", "BilledCost", "ServiceName"
                 FROM reporting_detail.focus_1_4_cost_and_usage ORDER BY 1`),
  ).toEqual([
    "base Traces 100 Traces Traces 50.0000000000 Agent platform traces",
    "extended Long-lived Traces 30 Traces Traces 120.0000000000 Agent platform traces",
    "nodes Nodes Executed 7 Nodes Nodes 0.7000000000 Agent platform deployments",
    "runs Agent Runs 2 Runs Runs 0.0200000000 Agent platform deployments",
    "uptime Agent Uptime 3600 Seconds Seconds 3.6000000000 Agent platform deployments",
  ]);
  expect(
    await lines(
      "SELECT sku, measure, traces, trim_scale(quantity) FROM reporting.fct_cost_workspace_daily ORDER BY 1",
    ),
  ).toEqual([
    "base traces 100 100",
    "extended longlived 30 30",
    "nodes nodes_executed - 7",
    "runs agent_runs - 2",
    "uptime agent_uptime_seconds - 3600",
  ]);
  await createPrices(store, [
    { sku: "short", unitPrice: "0.5", measure: "shortlived" },
    { sku: "short", unitPrice: "0.4", measure: "shortlived", fromQuantity: 50 },
    { sku: "extended", unitPrice: "4.5", measure: "longlived" },
  ]);
  expect(
    await lines(
      `SELECT "SkuId", trim_scale("ConsumedQuantity"), "BilledCost" FROM reporting_detail.focus_1_4_cost_and_usage ORDER BY 1, 2`,
    ),
  ).toEqual(["extended 30 135.0000000000", "short 20 8.0000000000", "short 50 25.0000000000"]);
  expect(await lines("SELECT * FROM reporting_detail.usage_unpriced_daily")).toEqual([]);
});

test("costs of tiers and deployments belong to who used them, by user, project and deployment", async () => {
  await create("workspace", { [WORKSPACE]: { traces: 100, longlived: 30, measures: [40, 10, 3600] } });
  await create("user", {
    [A]: { traces: 50, longlived: 18, measures: [20, 5, 1800] },
    [B]: { traces: 25, longlived: 0, measures: [10, 2, 900] },
    "": { traces: 1, longlived: 0, measures: [0, 0, 36] },
  });
  await create("project", {}, windowOf("day", dayOf(0), DAY));
  await create("project", {}, windowOf("day", dayOf(3), dayOf(DAYS)));
  await createPrices(store, [
    { sku: "short", unitPrice: "0.5", measure: "shortlived" },
    { sku: "extended", unitPrice: "4.5", measure: "longlived" },
    { sku: "runs", unitPrice: "0.01", measure: "agent_runs" },
  ]);
  const shown = (dimension: string) =>
    lines(`SELECT sku, right(dimension_id, 6), trim_scale(quantity), trim_scale(estimated_cost), is_final, coverage_status
           FROM reporting_detail.fct_cost_by_id_daily WHERE group_by = '${dimension}' ORDER BY 1, 2`);
  expect(await shown("user")).toEqual([
    "extended (none) 12 54 t ok",
    "extended 00000a 18 81 t ok",
    "runs (none) 3 0.03 t ok",
    "runs 00000a 5 0.05 t ok",
    "runs 00000b 2 0.02 t ok",
    "short (none) 13 6.5 t ok",
    "short 00000a 32 16 t ok",
    "short 00000b 25 12.5 t ok",
  ]);
  expect(await shown("project")).toEqual([
    "extended - 30 135 f missing",
    "runs (none) 10 0.1 t ok",
    "short - 70 35 f missing",
  ]);
  expect(await shown("deployment")).toEqual(["runs - 10 0.1 f missing"]);
});

test("an import refuses prices that would charge a trace twice, and a SKU that counts two things", async () => {
  const message = (lines: readonly GivenPrice[]) =>
    createPrices(store, lines).then(
      () => "imported",
      (error: Error) => error.message,
    );
  expect(
    await message([
      { sku: "base", unitPrice: "1" },
      { sku: "short", unitPrice: "1", measure: "shortlived" },
    ]),
  ).toContain("short-lived traces would be charged twice");
  const short = { sku: "short", unitPrice: "1", measure: "shortlived" } as const;
  expect(
    await message([
      { sku: "base", unitPrice: "1", to: "2026-03-01" },
      { ...short, from: "2026-03-01" },
    ]),
  ).toBe("imported");
  expect(
    await message([
      { sku: "one", unitPrice: "1", to: "2026-03-01" },
      { sku: "one", unitPrice: "1", measure: "agent_runs", from: "2026-03-01" },
    ]),
  ).toContain("SKU one counts traces elsewhere");
});

test("a close keeps the final charges of tiers and deployments; others become changes of the month", async () => {
  const march = windowOf("day", "2026-03-01", "2026-04-01");
  const response = { sourceId, groupBy: "workspace" as const, workspaceId: WORKSPACE, window: march };
  for (const groupBy of ["workspace", "project", "user", "api_key"] as const) {
    for (const workspaceId of WORKSPACES) {
      const id = groupBy === "workspace" ? workspaceId : "a";
      await loadRows(store, { ...response, groupBy, workspaceId, rows: [["2026-03-02", id, 10]] });
    }
  }
  await client.query(`INSERT INTO usage.reconciled (scope_id, period_start, period_end, fetch_number, reconciled_at)
    SELECT scope_id, '2026-03-01Z', '2026-04-01Z', 999, now() FROM usage.trace_scope WHERE stride = 'day'; ${KEEP_PROOF}`);
  const [NEVER, ALWAYS] = [10 * 365 * 86_400_000, 0];
  await loadRows(store, { ...response, meter: "longlived", rows: [["2026-03-02", WORKSPACE as string, 4]] });
  const deployments = [["2026-03-02", WORKSPACE as string, [5, 1, 60]]] as const;
  await loadDeploymentRows(store, { ...response, rows: deployments, settleAfterMs: NEVER });
  await createPrices(store, [
    { sku: "base", unitPrice: "1" },
    { sku: "extended", unitPrice: "2", measure: "longlived" },
    { sku: "runs", unitPrice: "3", measure: "agent_runs" },
  ]);
  const closed = await closePeriod(store, {
    sourceId,
    period: monthAt(Date.parse("2026-03-01")),
    settleAfterMs: 0,
    by: { name: "ada", role: "operator", via: "command" },
  });
  expect(closed).toMatchObject({ state: "closed" });
  await loadDeploymentRows(store, { ...response, rows: deployments, settleAfterMs: ALWAYS });
  expect(
    await lines(`SELECT sku, measure, trim_scale(closed_quantity), closed_cost, adjustment_cost FROM reporting_detail.fct_close_cost
                 WHERE workspace_id = '${WORKSPACE}' ORDER BY 1`),
  ).toEqual([
    "base traces 10 10.0000000000 0.0000000000",
    "extended longlived 4 8.0000000000 0.0000000000",
    "runs agent_runs 0 0.0000000000 3.0000000000",
  ]);
  await loadRows(store, { ...response, meter: "longlived", rows: [["2026-03-02", WORKSPACE as string, 9]] });
  expect(
    await lines(`SELECT "SkuId", "x_BillingMonth", "ChargeClass", trim_scale("ConsumedQuantity"), "ConsumedUnit", "x_IsFinal"
                 FROM reporting_detail.focus_1_4_cost_and_usage WHERE "SubAccountId" = '${WORKSPACE}' ORDER BY 1, 2`),
  ).toEqual([
    "base 2026-03-01 - 10 Traces t",
    "extended 2026-03-01 - 4 Traces t",
    "extended 2026-04-01 Correction 5 Traces t",
    "runs 2026-04-01 Correction 1 Runs t",
  ]);
});
