import { expect, test } from "vitest";
import { enterPrices } from "../support/charges.ts";
import { WORKSPACES } from "../support/reporting.ts";
import { close, loadDay, loadMonth, setup } from "./focus/bench.ts";

const [WORKSPACE, OTHER] = WORKSPACES;

/** March as a release before charges were kept closes it beside this schema: totals and costs, no charges by day. */
const CLOSE = `
  WITH closed AS (
    INSERT INTO usage.month_close (source_id, month_start, accepted_disagreements, settle_after_seconds)
    SELECT source_id, '2026-03-01', 0, 0 FROM usage.source RETURNING close_id
  ), workspaces AS (
    INSERT INTO usage.closed_workspace (close_id, workspace_id, is_left_out)
    SELECT close_id, entity_id, false FROM closed, usage.workspace
  ), totals AS (
    INSERT INTO usage.closed_total (close_id, series_id, traces)
    SELECT close_id, series_id, sum(traces) FROM closed, usage.dated_record WHERE bucket_start < '2026-04-01' GROUP BY 1, 2
  )
  INSERT INTO usage.closed_cost (close_id, workspace_id, sku, unit_price, currency, traces, cost)
  SELECT close_id, workspace_entity_id, sku, unit_price, currency, sum(traces), sum(cost) FROM closed, usage.charge
  WHERE month_start = '2026-03-01' GROUP BY 1, 2, 3, 4, 5`;

test("a month that an earlier release closed keeps its total and cost; its charges by day are those of now", async () => {
  const bench = await setup();
  const lines = async (query: string) =>
    (await bench.reader.query<Record<string, string>>(query)).rows.map((row) => Object.values(row).join(" "));
  const charges = () =>
    lines(`
      SELECT concat_ws(' ', to_char("x_BillingMonth", 'MM'), to_char("x_UsageDate", 'MM-DD'), coalesce("ChargeClass", '-'),
                       "PricingQuantity", trim_scale("BilledCost")) AS line
      FROM reporting.focus_1_4_cost_and_usage ORDER BY "x_BillingMonth", "x_UsageDate", "PricingQuantity"`);
  await enterPrices(bench.store, [{ unitPrice: "2" }]);
  for (const workspace of WORKSPACES) {
    const traces = workspace === WORKSPACE ? 5 : 1;
    await loadMonth(bench, 0, workspace, [["2026-03-01", workspace, traces]]);
    await loadMonth(bench, 1, workspace, [["2026-04-01", workspace, traces]]);
  }
  await bench.owner.query(CLOSE);
  await loadDay(bench, "2026-03-01", OTHER, 2);
  await enterPrices(bench.store, [{ unitPrice: "3" }]);

  // Nothing is called closed whose charges are not kept, and nothing corrects what was never kept.
  const march = ["03 03-01 - 2 6", "03 03-01 - 5 15"];
  expect(await charges()).toEqual([...march, "04 04-01 - 1 3", "04 04-01 - 5 15"]);
  const states = `
    SELECT concat_ws(' ', to_char("x_BillingMonth", 'MM'), "BillingPeriodStatus") FROM reporting.focus_1_4_billing_period
    WHERE "x_BillingMonth" < '2026-05-01' ORDER BY 1`;
  expect(await lines(states)).toEqual(["03 Open", "04 Open"]);
  expect(await lines("SELECT DISTINCT is_closed FROM reporting.fct_cost_workspace_daily")).toEqual(["f"]);
  // What was kept of the close does not change, and what has changed since is an adjustment.
  const closed = [
    `SELECT concat_ws(' ', right(workspace_id, 1), closed_traces, adjustment_traces, current_traces) FROM reporting.usage_month_close
     WHERE group_by = 'workspace' ORDER BY 1`,
    `SELECT concat_ws(' ', right(workspace_id, 1), sum(closed_traces), trim_scale(sum(closed_cost)), trim_scale(sum(adjustment_cost)))
     FROM reporting.usage_month_close_cost GROUP BY workspace_id ORDER BY 1`,
  ];
  const [totals, costs] = [
    ["1 5 0 5", "2 1 1 2"],
    ["1 5 10 5", "2 1 2 4"],
  ];
  expect([await lines(closed[0] ?? ""), await lines(closed[1] ?? "")]).toEqual([totals, costs]);

  // This release closes the month after it.
  await close(bench, 1);
  expect(await lines(states)).toEqual(["03 Open", "04 Closed"]);
  await enterPrices(bench.store, [{ unitPrice: "4" }]);
  expect(await charges()).toEqual([
    ...["03 03-01 - 2 8", "03 03-01 - 5 20", "04 04-01 - 1 3", "04 04-01 - 5 15"],
    ...[
      "05 04-01 Correction -5 -15",
      "05 04-01 Correction -1 -3",
      "05 04-01 Correction 1 4",
      "05 04-01 Correction 5 20",
    ],
  ]);
});
