import { DateTime } from "luxon";
import { expect, test } from "vitest";
import { describeReconcile } from "../../../src/app/commands/reconcile.ts";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import { amountOf } from "../../../src/core/domain/usage/amount.ts";
import { checkTotals } from "../../../src/core/pipeline/proof/check-totals.ts";
import { closeSources } from "../../../src/features/close/close.ts";
import type { SandboxHour } from "../../../src/features/standin/engine/sandboxes.ts";
import { createPrices } from "../../support/charges.ts";
import { now } from "../../support/clock.ts";
import { ALL, fault, hoursOf, inLedger, inViews, PATH, setupSandboxes } from "../../support/sandboxes.ts";

test("days by workspace and sandbox are the hours of the platform, added up to the last digit", async () => {
  const bench = await setupSandboxes();
  const { run } = await bench.sync(ALL);
  expect(run.failures).toEqual([]);
  expect(inLedger(bench, "sandbox").length).toBeGreaterThan(10);
  for (const by of ["workspace", "sandbox"] as const)
    expect(await inViews(bench, by)).toEqual(inLedger(bench, by));

  await bench.sync(ALL);
  expect(await inViews(bench, "sandbox")).toEqual(inLedger(bench, "sandbox"));
  const last = hoursOf(bench).at(-1) as SandboxHour;
  bench.standin.sandboxLedger.change({
    resourceId: last.resourceId,
    at: last.hour,
    measure: "lcu",
    delta: 123_457,
  });
  await bench.sync(ALL);
  expect(await inViews(bench, "sandbox")).toEqual(inLedger(bench, "sandbox"));

  const kinds = await bench.sql<{ kind: string; dimensions: string }>(
    "SELECT kind, string_agg(DISTINCT group_by, ' ' ORDER BY group_by) AS dimensions FROM usage.scope GROUP BY kind ORDER BY kind",
  );
  expect(kinds).toEqual([
    { kind: "sandboxes", dimensions: "project workspace" },
    { kind: "traces", dimensions: "api_key project user workspace" },
  ]);
});

test("days of a workspace with many sandboxes are sums by resource, and equal the sums of their hours", async () => {
  const bench = await setupSandboxes({ workspaces: [0], standin: { scale: 25 } });
  await bench.sync(ALL);
  const daily = bench.standin.requests.recent.filter(({ url }) => url.includes("granularity=RESOURCE"));
  expect(daily.length).toBeGreaterThan(7);
  for (const by of ["workspace", "sandbox"] as const)
    expect(await inViews(bench, by)).toEqual(inLedger(bench, by));
});

test("an empty page is not the end", async () => {
  const bench = await setupSandboxes({ workspaces: [0], days: 45 });
  bench.standin.faults.script(fault("empty-page", 3));
  await bench.sync(ALL);
  expect(bench.standin.faults.fired).toBe(3);
  expect(await inViews(bench, "sandbox")).toEqual(inLedger(bench, "sandbox"));
});

test("sums by resource prove the days, and one that differs is a finding in its own units", async () => {
  const bench = await setupSandboxes({ days: 45, workspaces: [0] });
  await bench.sync(ALL);
  const source = await bench.open(ALL);
  const good = await checkTotals(source, "all");
  const sandboxes = good.others.find(({ meter }) => meter === "sandboxes");
  expect(good.findings).toEqual([]);
  expect(sandboxes?.daysProved).toBeGreaterThan(60);
  // No export has them, and `reconcile` says so.
  const reconciled = await bench.reconcile();
  expect(reconciled.notExported).toEqual(["sandboxes"]);
  expect(describeReconcile(reconciled)).toContain(
    "\nnot compared: sandbox usage: the platform does not export it.",
  );

  const { resourceId, hour } = hoursOf(bench).find(
    ({ hour }) => hour > bench.today - 20 * DAY_MS,
  ) as SandboxHour;
  bench.standin.sandboxLedger.contradictions.push({
    resourceId,
    at: hour,
    measure: "lsu",
    delta: 250_000,
  });
  const [first] = (await checkTotals(source, "all")).findings;
  expect(first).toMatchObject({ meter: "sandboxes", measure: "lsu", state: "platform_disagrees" });
  expect((first?.controlTraces ?? 0) - (first?.storedTraces ?? 0)).toBeCloseTo(0.25, 9);
});

test("a close names what its costs leave out, before and after an import", async () => {
  const start = DateTime.utc().startOf("month").minus({ months: 1 });
  const days = Math.ceil((now() - start.toMillis()) / DAY_MS);
  const bench = await setupSandboxes({ days, workspaces: [0] });
  await bench.sync(ALL);
  const month = start.toFormat("yyyy-MM");
  const by = { name: null, role: "operator", via: "command" } as const;
  const leftOut = async (withoutCosts = false) => {
    const order = { period: month, slugs: [], settleAfterMs: 0, withoutCosts, by };
    const closed = await closeSources(bench.store, order);
    return closed.map(({ result, withoutCost }) => [result.state, withoutCost]);
  };
  // Of no price at all something else is said, and of a close without costs nothing is asked.
  expect(await leftOut()).toEqual([["open", []]]);
  const lcu = { sku: "sandbox-lcu", measure: "lcu", unitPrice: "1.5", from: "2020-01-01" } as const;
  await createPrices(bench.store, [lcu]);
  expect(await leftOut()).toEqual([["open", ["Traces", "Sandbox storage (LSU)"]]]);
  expect(await leftOut(true)).toEqual([["open", []]]);
  const all = { sku: "all", unitPrice: "1", from: "2020-01-01" };
  await createPrices(bench.store, [lcu, all, { ...lcu, sku: "sandbox-lsu", measure: "lsu" }]);
  expect(await leftOut()).toEqual([["open", []]]);
});

test("compute and storage units are charged to the last digit, by workspace, sandbox, bill and FOCUS", async () => {
  const bench = await setupSandboxes();
  await bench.sync(ALL);
  const lcu = { sku: "sandbox-lcu", measure: "lcu", countedOver: "workspace", from: "2020-01-01" } as const;
  await createPrices(bench.store, [
    { ...lcu, unitPrice: "1.5" },
    { ...lcu, unitPrice: "1.25", fromQuantity: 2 },
    { sku: "sandbox-lsu", measure: "lsu", unitPrice: "0.0625", from: "2020-01-01" },
  ]);
  const months = Map.groupBy(
    hoursOf(bench),
    ({ workspaceId, hour }) => `${workspaceId} ${new Date(hour).toISOString().slice(0, 7)}`,
  );
  const sums = [...months.values()].map((hours) => ({
    lcu: hours.reduce((sum, one) => sum + BigInt(one.lcu), 0n),
    lsu: hours.reduce((sum, one) => sum + BigInt(one.lsu), 0n),
  }));
  expect(sums.some((month) => month.lcu > 2_000_000n)).toBe(true);
  const expected = sums.reduce((all, month) => {
    const dear = month.lcu < 2_000_000n ? month.lcu : 2_000_000n;
    return all + dear * 15_000n + (month.lcu - dear) * 12_500n + month.lsu * 625n;
  }, 0n);
  const costs = {
    workspace: "SELECT sum(estimated_cost) AS cost FROM reporting.fct_cost_workspace_daily",
    sandbox:
      "SELECT sum(estimated_cost) AS cost FROM reporting_detail.fct_cost_by_id_daily WHERE group_by = 'sandbox'",
    bill: "SELECT sum(estimated_cost) AS cost FROM reporting.usage_bill_monthly WHERE service = 'sandboxes'",
    focus: `SELECT sum("BilledCost") AS cost FROM reporting_detail.focus_1_4_cost_and_usage WHERE "ServiceName" LIKE '%sandboxes'`,
  };
  for (const [where, text] of Object.entries(costs)) {
    const [row] = await bench.sql<{ cost: string }>(text);
    expect(amountOf(row?.cost ?? ""), where).toBe(expected);
  }
});

test.each([
  ["fixed", "documented"],
  ["documented", "named"],
] as const)(
  "a server that refuses the size of a page is asked once, then for pages of its own size (%s, %s)",
  async (sandboxPages, how) => {
    const bench = await setupSandboxes({ workspaces: [0], standin: { sandboxPages } });
    if (how === "named") {
      const detail = [{ loc: ["query", "page_size"], msg: "at most 10", type: "value_error" }];
      const response = { status: 422, body: JSON.stringify({ detail }), content_type: "application/json" };
      const match = { path: PATH, query: { page_size: "100" } };
      bench.standin.faults.script({ fault: { kind: "status", ...response }, match, times: 1000 });
    }
    await bench.sync(ALL);
    const requested = bench.standin.requests.recent.filter(({ url }) => url.includes(PATH));
    expect(requested.filter(({ url }) => url.includes("page_size="))).toHaveLength(1);
    expect(requested.length).toBeGreaterThan(10);
    expect(await inViews(bench, "sandbox")).toEqual(inLedger(bench, "sandbox"));
  },
);

test("a first look for sandboxes that broke off is made again over all time", async () => {
  const bench = await setupSandboxes({ workspaces: [4], days: 45 });
  bench.standin.faults.script({ fault: { kind: "status", status: 500 }, match: { path: PATH }, times: 3 });
  await bench.sync(ALL);
  await bench.passTime();
  const before = bench.standin.requests.count;
  await bench.sync(ALL);
  const urls = bench.standin.requests.recent.slice(before).map(({ url }) => url);
  const first = new Date(bench.dataStart).toISOString().slice(0, 10);
  expect(urls.filter((url) => url.includes(`${PATH}costs?start_time=${first}`))).toHaveLength(1);
});

test("a server without sandboxes is asked once about each workspace, and one whose workspaces have none is told so", async () => {
  const bench = await setupSandboxes({ standin: { sandboxes: "off" } });
  await bench.sync(ALL);
  const requested = () => bench.standin.requests.recent.filter(({ url }) => url.includes(PATH)).length;
  expect(requested()).toBe(bench.workspaceIds.length);
  await bench.sync(ALL);
  expect(requested()).toBe(bench.workspaceIds.length);

  const empty = await setupSandboxes({ workspaces: [4] });
  await empty.sync(ALL);
  const [learned] = await empty.sql<{ state: string; evidence: string }>(
    "SELECT state, evidence FROM usage.source_meter WHERE meter = 'sandboxes'",
  );
  expect(learned).toEqual({ state: "not_counted", evidence: "it responds no sandbox usage" });
});
