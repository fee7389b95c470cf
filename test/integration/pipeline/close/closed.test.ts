import { beforeEach, expect, test } from "vitest";
import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import { runInline } from "../../../../src/core/pipeline/extract/run-inline.ts";
import { planSource } from "../../../../src/core/pipeline/sync/plan.ts";
import { closedCosts } from "../../../../src/features/costs/closed-costs.store.ts";
import { adjustmentsOf, countAdjusted } from "../../../../src/features/costs/month-adjustments.store.ts";
import { adjustedCosts, costlessMonths, unpricedUsage } from "../../../../src/features/costs/prices.store.ts";
import { createPrices } from "../../../support/charges.ts";
import {
  bench,
  booked,
  close,
  load,
  month,
  reasons,
  setUpMonth,
  totals,
  WORKSPACE,
} from "../../../support/month.ts";
import { poll } from "../../../support/poll.ts";
import { senderOn } from "../../../support/source.ts";
import { lockWaits, untilLockWaits } from "../../../support/store.ts";

beforeEach(() => setUpMonth());

test("a month stays open until it is loaded and reconciled with the export, then closes with the platform's traces", async () => {
  expect(reasons(await close())).toEqual(["missing"]);
  await load();
  const unproved = await close();
  expect(reasons(unproved)).toEqual(["not_reconciled"]);
  expect(unproved).toMatchObject({ open: { length: 4 * Math.round((month.end - month.start) / DAY_MS) } });

  await bench.reconcile({ range: month });
  const done = { state: "closed", traces: booked(), accepted: 0, without: [], settleAfterSeconds: 259_200 };
  expect(await close()).toMatchObject(done);
  const closed = booked();
  expect(await totals()).toEqual(
    ["api_key", "project", "user", "workspace"].map((group_by) => ({
      group_by,
      closed,
      adjustment: 0,
      current: closed,
    })),
  );
});

test("a later change becomes an adjustment and leaves the closed totals as they are", async () => {
  await load();
  await bench.reconcile({ range: month });
  await close();
  const closed = booked();
  const sender = senderOn(bench.standin, WORKSPACE, month.start + 9 * DAY_MS);
  bench.standin.ledger.change(sender, 6);
  await load();
  expect(await totals()).toEqual(
    ["api_key", "project", "user", "workspace"].map((group_by) => ({
      group_by,
      closed,
      adjustment: 6,
      current: closed + 6,
    })),
  );
  expect(await close()).toMatchObject({ state: "closed_before", adjusted: 4 });

  const { db } = bench.store;
  const [{ closeId = 0 } = {}] = await bench.sql<{ closeId: number }>(
    'SELECT close_id AS "closeId" FROM usage.close',
  );
  const inView = await bench.sql(
    `SELECT group_by AS "groupBy", workspace_id AS "workspaceId", workspace_name AS "workspaceName",
            dimension_id AS "dimensionId",
            coalesce(dimension_name, (SELECT user_email FROM reporting_detail.dim_user WHERE user_id = dimension_id)) AS "dimensionName",
            closed_traces::bigint AS "closedTraces", current_traces::bigint AS "currentTraces"
     FROM reporting_detail.fct_close WHERE adjustment_traces <> 0 ORDER BY usage.dimension_position(group_by)`,
  );
  const counts = { totals: 4, netTraces: 6, others: [] };
  expect(await adjustmentsOf(db, { closeId, most: 10, masked: false })).toEqual({
    ...counts,
    largest: inView,
  });
  expect(await countAdjusted(db, [closeId, closeId + 1])).toEqual(
    new Map([[closeId, { ...counts, costs: [] }]]),
  );
});

test("a load between check and totals waits, and becomes an adjustment", async () => {
  await load();
  await bench.reconcile({ range: month });
  const closed = booked();
  bench.standin.ledger.change(senderOn(bench.standin, WORKSPACE, month.start + 9 * DAY_MS), 6);
  // Contact comes first: it would wait for the close too, and then the load could not overtake it.
  const source = await bench.open();
  const plan = { wanted: [{ stride: "day" as const, range: month }], reprocess: "all" as const };
  const tasks = await planSource(source, plan);
  const { running, loading } = await bench.store.transaction(async ({ client }) => {
    // Readers pass, and so does the check; the totals are written only when this transaction has ended.
    await client.query("LOCK TABLE usage.closed_total IN SHARE MODE");
    const running = close();
    await untilLockWaits(bench.store);
    let isLoaded = false;
    const loading = runInline(source, tasks).then(() => {
      isLoaded = true;
    });
    await poll(async () => isLoaded || (await lockWaits(bench.store)) > 1);
    expect(isLoaded).toBe(false);
    return { running, loading };
  });
  expect(await running).toMatchObject({ state: "closed", traces: closed });
  await loading;
  expect(await totals()).toMatchObject(
    Array.from({ length: 4 }, () => ({ closed, adjustment: 6, current: closed + 6 })),
  );
});

test("an id that is first seen after the close is an adjustment of its own", async () => {
  await load();
  await bench.reconcile({ range: month });
  await close();
  const sender = senderOn(bench.standin, WORKSPACE, month.start + 9 * DAY_MS);
  const { user, key } = sender;
  if (user === null || key === null) throw new Error("no sender");
  const added = { ...sender, user: { ...user, id: "00000000-0000-4000-8000-00000000feed" } };
  bench.standin.ledger.change(added, 4);
  await load();
  const rows = await bench.sql(
    `SELECT closed_traces::integer, adjustment_traces::integer, current_traces::integer
     FROM reporting_detail.fct_close WHERE group_by = 'user' AND dimension_id = $1`,
    [added.user.id],
  );
  expect(rows).toEqual([{ closed_traces: 0, adjustment_traces: 4, current_traces: 4 }]);
  expect(await totals()).toMatchObject(Array.from({ length: 4 }, () => ({ adjustment: 4 })));
});

const changePrice = (unitPrice: string) =>
  createPrices(bench.store, [{ sku: "base", unitPrice, from: "2020-01-01" }]);

test("a close keeps the prices it was made with; a later price is an adjustment", async () => {
  await load();
  await bench.reconcile({ range: month });
  const costs = () =>
    bench.sql(
      `SELECT unit_price::float, closed_quantity::integer, closed_cost::float, adjustment_cost::float, current_cost::float
       FROM reporting_detail.fct_close_cost ORDER BY unit_price`,
    );
  await changePrice("0.5");
  await close({ withoutCosts: false });
  const [traces, cost] = [booked(), booked() / 2];
  expect(await costs()).toEqual([
    { unit_price: 0.5, closed_quantity: traces, closed_cost: cost, adjustment_cost: 0, current_cost: cost },
  ]);
  expect(await adjustedCosts(bench.store.db)).toEqual([]);
  const shown = () =>
    bench.sql(
      `SELECT v.of, sum(v.cost)::float AS cost, bool_and(v.is_closed) AS is_closed
       FROM (SELECT 'workspace' AS of, estimated_cost AS cost, is_closed, usage_date FROM reporting.fct_cost_workspace_daily
             UNION ALL SELECT 'user', estimated_cost, is_closed, usage_date FROM reporting_detail.fct_cost_by_id_daily
             WHERE group_by = 'user') v
       WHERE usage_date >= $1::date AND usage_date < $2::date GROUP BY 1 ORDER BY 1`,
      [month.start, month.end].map((ms) => new Date(ms).toISOString().slice(0, 10)),
    );
  const shownCosts = ["user", "workspace"].map((of) => ({ of, cost, is_closed: true }));
  expect(await shown()).toEqual(shownCosts);
  await changePrice("0.25");
  expect(await shown()).toEqual(shownCosts);
  expect(await adjustedCosts(bench.store.db)).toEqual([
    `default ${new Date(month.start).toISOString().slice(0, 7)}`,
  ]);
  const [closed] = await bench.sql<{ closeId: number; sourceId: number; monthStart: string }>(
    `SELECT close_id AS "closeId", source_id AS "sourceId", month_start::text AS "monthStart" FROM usage.close`,
  );
  if (closed === undefined) throw new Error("not closed");
  const more = { currency: "USD", more: String(-cost / 2) };
  expect(await countAdjusted(bench.store.db, [closed.closeId])).toEqual(
    new Map([[closed.closeId, { totals: 0, netTraces: 0, others: [], costs: [more] }]]),
  );
  const { rows, total } = await closedCosts(bench.store.db, { ...closed, most: 1 });
  expect([rows.map(({ unitPrice, adjustmentCost }) => [unitPrice, adjustmentCost]), total]).toEqual([
    [["0.5", String(-cost)]],
    2,
  ]);
  expect(await costs()).toEqual([
    {
      unit_price: 0.25,
      closed_quantity: 0,
      closed_cost: 0,
      adjustment_cost: cost / 2,
      current_cost: cost / 2,
    },
    { unit_price: 0.5, closed_quantity: traces, closed_cost: cost, adjustment_cost: -cost, current_cost: 0 },
  ]);
});

test("a month without a price closes without costs only if asked, and has none anywhere until they are closed", async () => {
  await load();
  await bench.reconcile({ range: month });
  const withCosts = () => close({ withoutCosts: false });
  await expect(withCosts()).rejects.toMatchObject({ code: "month_unpriced" });
  expect(await bench.sql("SELECT FROM usage.close")).toEqual([]);
  expect(await close()).toMatchObject({ state: "closed", traces: booked(), costs: [] });
  await expect(withCosts()).rejects.toMatchObject({ code: "month_unpriced" });
  const [from, to] = [month.start, month.end].map((ms) => new Date(ms).toISOString().slice(0, 10));
  const costs = async () => {
    const rows = await bench.sql<{ of: string; cost: number | null }>(
      `WITH cost AS (
         SELECT 'workspace' AS of, usage_date, estimated_cost AS cost FROM reporting.fct_cost_workspace_daily
         UNION ALL SELECT 'project', usage_date, estimated_cost FROM reporting_detail.fct_cost_by_id_daily WHERE group_by = 'project'
         UNION ALL
         SELECT 'focus ' || coalesce("ChargeClass", "x_BillingMonth"::text), "x_UsageDate", "BilledCost"
         FROM reporting_detail.focus_1_4_cost_and_usage
         UNION ALL SELECT 'close', period_start, closed_cost FROM reporting_detail.fct_close_cost
         UNION ALL SELECT 'adjustment', period_start, nullif(adjustment_cost, 0) FROM reporting_detail.fct_close_cost
         UNION ALL SELECT 'unpriced traces', usage_date, traces FROM reporting_detail.usage_unpriced_daily WHERE NOT has_other_price
       )
       SELECT of, sum(cost)::float AS cost FROM cost WHERE usage_date >= $1::date AND usage_date < $2::date
       GROUP BY of HAVING sum(cost) IS NOT NULL`,
      [from, to],
    );
    return Object.fromEntries(rows.map(({ of, cost }) => [of, cost]));
  };
  const [{ sourceId = 0 } = {}] = await bench.sql<{ sourceId: number }>(
    'SELECT source_id AS "sourceId" FROM usage.source',
  );
  await changePrice("0.5");
  expect(await costs()).toEqual({ "unpriced traces": booked() });
  // It was asked for, so nothing warns of it. An import names it.
  expect(await unpricedUsage(bench.store.db, sourceId)).toMatchObject({ prices: 1, traces: 0 });
  expect(await costlessMonths(bench.store.db)).toEqual([`default ${from?.slice(0, 7)}`]);
  expect(await close()).toMatchObject({ state: "closed_before", costsClosedAt: null });

  // Somebody who looked at closing the month looked at something else.
  const stale = close({ withoutCosts: false, accept: ["x"] });
  await expect(stale).rejects.toMatchObject({ code: "period_changed" });
  expect(await costs()).toEqual({ "unpriced traces": booked() });

  const cost = booked() / 2;
  expect(await withCosts()).toMatchObject({
    state: "costs_closed",
    costs: [{ currency: "USD", cost: String(cost), notInvoiced: "0" }],
    accepted: 0,
    without: [],
  });
  const closed = { workspace: cost, project: cost, [`focus ${from}`]: cost, close: cost };
  expect(await costs()).toEqual(closed);
  expect(await costlessMonths(bench.store.db)).toEqual([]);
  expect(await withCosts()).toMatchObject({ state: "closed_before", costsClosedAt: expect.any(String) });
  await changePrice("0.25");
  const correction = { "focus Correction": -cost / 2, adjustment: -cost / 2 };
  expect(await costs()).toEqual({ ...closed, ...correction });
  await bench.sql("UPDATE usage.price SET valid_from = '9000-01-01'");
  expect(await costs()).not.toHaveProperty("unpriced traces");
  expect(await costs()).toMatchObject(closed);
  expect(await unpricedUsage(bench.store.db, sourceId)).toMatchObject({ traces: 0 });
  expect(await bench.sql("SELECT action FROM usage.operator_action ORDER BY action_id")).toEqual([
    { action: "close" },
    { action: "close.costs" },
  ]);
});
