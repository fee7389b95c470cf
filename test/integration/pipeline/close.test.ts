import { DateTime } from "luxon";
import { beforeEach, describe, expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../../src/domain/time/stride.ts";
import { closeSources } from "../../../src/pipeline/close/close.ts";
import { lookAtMonth } from "../../../src/pipeline/close/look.ts";
import { runInline } from "../../../src/pipeline/extract/run-inline.ts";
import { planSource } from "../../../src/pipeline/sync/plan.ts";
import { noteBillPart } from "../../../src/store/catalog/bill-parts.ts";
import { digestToClose } from "../../../src/store/report/close-digest.ts";
import { closedCosts } from "../../../src/store/report/closed-costs.ts";
import { adjustmentsOf, countAdjusted } from "../../../src/store/report/month-adjustments.ts";
import { type CloseRequest, type CloseResult, closeMonth } from "../../../src/store/report/month-close.ts";
import { checkMonths } from "../../../src/store/report/month-open-days.ts";
import { sourcesWithWorkspaces } from "../../../src/store/report/overview.ts";
import { adjustedCosts } from "../../../src/store/report/prices.ts";
import { poll } from "../../support/poll.ts";
import { type Bench, senderOn, setup } from "../../support/source.ts";

/** A month is closed when every day of it is final and proved, and what comes later stands beside it. */

const WORKSPACE = 1;

let bench: Bench;
let month: { start: number; end: number };

beforeEach(async () => {
  bench = await setup({ days: 100, workspaces: [WORKSPACE], hourlyForMs: HOUR_MS });
  // The last calendar month that is settled to its end.
  const start = DateTime.fromMillis(bench.today - 4 * DAY_MS, { zone: "utc" })
    .startOf("month")
    .minus({ months: 1 });
  month = { start: start.toMillis(), end: start.plus({ months: 1 }).toMillis() };
});

const load = (range = month) => bench.fetch({ wanted: [{ stride: "day", range }], reprocess: "all" });

type Options = Partial<Omit<CloseRequest, "sourceId" | "monthStart">>;

async function close(options: Options = {}): Promise<CloseResult> {
  const [source] = await bench.sql<{ source_id: number }>("SELECT source_id FROM usage.source");
  // Before the first contact there is no source.
  const sourceId = source?.source_id ?? (await bench.open()).sourceId;
  const monthStart = new Date(month.start).toISOString().slice(0, 10);
  const by = { name: null, role: "operator", via: "command" } as const;
  return closeMonth(bench.store, { sourceId, monthStart, settleAfterMs: 3 * DAY_MS, by, ...options });
}

const reasons = (result: CloseResult) =>
  result.state === "open" ? [...new Set(result.open.map((one) => one.reason))].sort() : result.state;

const totals = () =>
  bench.sql<{ group_by: string; closed: number; adjustment: number; current: number }>(
    `SELECT group_by, sum(closed_traces)::bigint AS closed, sum(adjustment_traces)::bigint AS adjustment,
            sum(current_traces)::bigint AS current
     FROM reporting.usage_month_close GROUP BY group_by ORDER BY group_by`,
  );

/** What the stand-in's book has for the month. */
const booked = () => {
  const { organisation, ledger } = bench.standin;
  return organisation.streams
    .filter(({ project }) => project.workspace === organisation.workspaces[WORKSPACE])
    .reduce((sum, stream) => sum + (ledger.counts(stream, [month.start, month.end])[0] ?? 0), 0);
};

test("a month stays open until it is loaded and reconciled with the export, then closes with the platform's traces", async () => {
  expect(reasons(await close())).toEqual(["missing"]);
  // Parts that are checked at once are each as checked alone: a day belongs to one of them.
  const [source] = await bench.sql<{ id: number }>("SELECT source_id AS id FROM usage.source");
  const middle = month.start + 10 * DAY_MS;
  const asked = { sourceId: source?.id ?? 0, without: [], acceptDisagreements: true };
  const parts = [
    { start: month.start, end: middle },
    { start: middle, end: month.end },
  ];
  const checked = await checkMonths(bench.store.db, { ...asked, ranges: parts });
  expect(checked.map(({ open }) => open.map((one) => `${one.day} ${one.groupBy}`))).toEqual(
    parts.map(({ start, end }) =>
      Array.from({ length: Math.round((end - start) / DAY_MS) }, (_, nth) => start + nth * DAY_MS).flatMap(
        (day) => ["api_key", "project", "user", "workspace"].map((groupBy) => `${day} ${groupBy}`),
      ),
    ),
  );
  expect(checked).toMatchObject(parts.map(() => ({ accepted: 0, required: [{ access: "read" }] })));
  const leftOut = { ...asked, without: bench.workspaceIds };
  expect(await checkMonths(bench.store.db, { ...leftOut, ranges: parts })).toEqual(
    parts.map(() => ({ required: [], open: [], accepted: 0 })),
  );

  await load();
  const unproved = await close();
  expect(reasons(unproved)).toEqual(["not_reconciled"]);
  expect(unproved).toMatchObject({ open: { length: 4 * Math.round((month.end - month.start) / DAY_MS) } });

  await bench.reconcile({ range: month });
  const done = { state: "closed", traces: booked(), accepted: 0, without: [], settleAfterSeconds: 259_200 };
  // A look finds what a close would, and a close with another digest than that of the look closes nothing.
  const { db } = bench.store;
  const monthStart = new Date(month.start).toISOString().slice(0, 10);
  const look = async () => {
    const [source] = await sourcesWithWorkspaces(db);
    if (source === undefined) throw new Error("no source");
    const at = { month: monthStart.slice(0, 7), now: bench.now };
    return lookAtMonth(db, { source, without: [], acceptDisagreements: false, ...at });
  };
  await noteBillPart(db, { sourceId: asked.sourceId, part: "provider_totals", refusal: "403" });
  const provider = { readAt: null, refusal: "403", outcomes: [] };
  const looked = await look();
  expect(looked).toMatchObject({
    closed: undefined,
    required: { length: 1 },
    open: [],
    accepted: 0,
    provider,
  });
  const inOrder = (expectedDigests: string[]) =>
    closeSources(bench.store, {
      ...{ month: monthStart.slice(0, 7), slugs: [], settleAfterMs: 3 * DAY_MS, expectedDigests },
      by: { name: null, role: "operator", via: "command" },
    });
  await expect(inOrder(["another"])).rejects.toMatchObject({ code: "month_changed" });
  expect(await bench.sql("SELECT FROM usage.month_close")).toEqual([]);
  const about = { sourceId: asked.sourceId, monthStart, without: [], required: looked.required };
  const { closed: sources } = await inOrder(["another", await digestToClose(db, about)]);
  expect(sources).toMatchObject([{ source: "default", asked: [], result: done, provider }]);
  expect(await look()).toMatchObject({
    ...{ closed: { traces: booked(), accepted: 0 }, required: [], open: [], accepted: 0 },
  });
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
  // Workspace, project, user and key of the sender.
  expect(await close()).toMatchObject({ state: "closed_before", adjusted: 4 });

  // The page and the command count from the totals that loads keep: the same as the view from the records.
  const { db } = bench.store;
  const [{ closeId = 0 } = {}] = await bench.sql<{ closeId: number }>(
    'SELECT close_id AS "closeId" FROM usage.month_close',
  );
  const inView = await bench.sql(
    `SELECT group_by AS "groupBy", workspace_id AS "workspaceId", workspace_name AS "workspaceName",
            dimension_id AS "dimensionId", dimension_name AS "dimensionName",
            closed_traces::bigint AS "closedTraces", current_traces::bigint AS "currentTraces"
     FROM reporting.usage_month_close WHERE adjustment_traces <> 0 ORDER BY usage.dimension_position(group_by)`,
  );
  const counts = { totals: 4, netTraces: 6 };
  const asked = { closeId, most: 10, masked: false };
  expect(await adjustmentsOf(db, asked)).toEqual({ ...counts, largest: inView });
  expect(await adjustmentsOf(db, { ...asked, most: 1 })).toEqual({ ...counts, largest: inView.slice(0, 1) });
  const masked = await adjustmentsOf(db, { ...asked, masked: true });
  const id = sender.user?.id;
  expect(masked.largest).toEqual(
    inView.map((one) =>
      (one as { groupBy: string }).groupBy === "user"
        ? { ...(one as object), dimensionName: `user ${id}` }
        : one,
    ),
  );
  expect(await countAdjusted(db, [closeId, closeId + 1])).toEqual(new Map([[closeId, counts]]));
  expect(await countAdjusted(db, [])).toEqual(new Map());
});

test("a day restated since it was reconciled is open again", async () => {
  await load();
  await bench.reconcile({ range: month });
  const day = month.start + 9 * DAY_MS;
  bench.standin.ledger.change(senderOn(bench.standin, WORKSPACE, day), 2);
  await load();
  expect(await close()).toMatchObject({
    state: "open",
    open: { length: 4, 0: { day, reason: "not_reconciled" } },
  });
});

test("platform totals that differ keep a month open unless somebody accepts them", async () => {
  const cell = senderOn(bench.standin, WORKSPACE, month.start + 9 * DAY_MS);
  await load();
  await bench.reconcile({ range: month });
  await bench.sql(
    `INSERT INTO usage.control_difference
       (scope_id, kind, period_start, period_end, external_id, stored_traces, control_traces, state, fetch_number)
     SELECT scope_id, 'stride_total', $1, $2, $3, 1, 2, 'platform_disagrees', 1
     FROM usage.scope WHERE stride = 'day' AND group_by = 'project'`,
    [
      new Date(month.start + 9 * DAY_MS).toISOString(),
      new Date(month.start + 10 * DAY_MS).toISOString(),
      cell.project.id,
    ],
  );
  expect(await close()).toMatchObject({
    state: "open",
    open: { length: 1, 0: { day: month.start + 9 * DAY_MS, groupBy: "project", reason: "total_differs" } },
  });
  const { closed: sources } = await closeSources(bench.store, {
    ...{ month: new Date(month.start).toISOString().slice(0, 7), slugs: [], settleAfterMs: 0 },
    by: { name: null, role: "operator", via: "command" },
  });
  expect(sources).toMatchObject([{ result: { state: "open" } }]);
  expect(await close({ acceptDisagreements: true })).toMatchObject({ state: "closed", accepted: 1 });
});

test("a day under way keeps its month open, whatever is accepted", async () => {
  const start = DateTime.fromMillis(bench.today, { zone: "utc" }).startOf("month").toMillis();
  month = { start, end: bench.today + DAY_MS };
  await load();
  expect(reasons(await close({ acceptDisagreements: true }))).toContain("provisional");
});

test("a failure over a final day keeps its month open", async () => {
  await load();
  await bench.reconcile({ range: month });
  await bench.sql(
    `INSERT INTO usage.failure
     SELECT scope_id, $1, $2, 'failed', 'x', 'x', 1, 1, now(), now() FROM usage.scope WHERE stride = 'day' AND group_by = 'user'`,
    [month.start, month.start + DAY_MS].map((ms) => new Date(ms).toISOString()),
  );
  expect(await close()).toMatchObject({
    state: "open",
    open: { length: 1, 0: { day: month.start, groupBy: "user", reason: "failed" } },
  });
});

test("what is accepted is not listed among the days that keep a month open", async () => {
  await load();
  await bench.reconcile({ range: month });
  const [first, second] = [month.start, month.start + DAY_MS];
  const instants = (day: number) => [day, day + DAY_MS].map((ms) => new Date(ms).toISOString());
  await bench.sql(
    `INSERT INTO usage.control_difference
       (scope_id, kind, period_start, period_end, external_id, stored_traces, control_traces, state, fetch_number)
     SELECT scope_id, 'stride_total', $1, $2, 'p', 1, 2, 'platform_disagrees', 1
     FROM usage.scope WHERE stride = 'day' AND group_by = 'project'`,
    instants(first),
  );
  await bench.sql(
    `INSERT INTO usage.failure
     SELECT scope_id, $1, $2, 'failed', 'x', 'x', 1, 1, now(), now() FROM usage.scope WHERE stride = 'day' AND group_by = 'user'`,
    instants(second),
  );
  const failed = { day: second, groupBy: "user", reason: "failed" };
  expect(await close()).toMatchObject({
    ...{ state: "open", open: { length: 2, 0: { day: first, reason: "total_differs" }, 1: failed } },
  });
  expect(await close({ acceptDisagreements: true })).toMatchObject({
    ...{ state: "open", open: { length: 1, 0: failed } },
  });
});

test("a month before the data start is refused, and one that it lies in needs only the days since", async () => {
  await bench.open();
  const date = (ms: number) => new Date(ms).toISOString().slice(0, 10);
  const start = (day: number) => bench.sql("UPDATE usage.source SET data_start = $1", [date(day)]);
  await start(month.end);
  await expect(close()).rejects.toMatchObject({
    code: "month_before_data",
    message: `${date(month.start).slice(0, 7)} ends before the data start.`,
    next: expect.stringContaining("usage-etl data-start"),
  });
  await start(month.end - DAY_MS);
  const result = await close();
  expect(result).toMatchObject({ state: "open", open: { length: 4, 0: { day: month.end - DAY_MS } } });
});

describe("a workspace with ten days of the month", () => {
  const [FULL, PARTIAL] = [1, 2];
  let partial: string;

  /** The whole month of one workspace, ten days of the other, all reconciled. */
  beforeEach(async () => {
    bench = await setup({ days: 100, workspaces: [FULL, PARTIAL], hourlyForMs: HOUR_MS });
    partial = bench.workspaceIds[1] ?? "";
    const loadDays = (range: typeof month, index: number) =>
      bench.fetch({
        ...{ wanted: [{ stride: "day", range }], reprocess: "all" },
        workspaceIds: bench.workspaceIds.slice(index, index + 1),
      });
    await loadDays(month, 0);
    await loadDays({ start: month.start, end: month.start + 10 * DAY_MS }, 1);
    await bench.reconcile({ range: month });
  });

  /** Dimensions x days that the second workspace lacks. */
  const lacking = () => 4 * (Math.round((month.end - month.start) / DAY_MS) - 10);

  test("keeps it open when the configuration no longer names it", async () => {
    await bench.open({ config: { workspaceIds: bench.workspaceIds.slice(0, 1) } });
    const result = await close();
    expect(result).toMatchObject({ state: "open", open: { length: lacking() } });
    expect(result).toMatchObject({
      open: { 0: { workspaceId: partial, access: "not_configured", reason: "missing" } },
    });
  });

  test("keeps it open when the platform no longer lists it", async () => {
    const { access, organisation } = bench.standin;
    const workspace = organisation.workspaces[PARTIAL];
    // Access is proven once more after the reconciliation, so what it compared stays proved.
    await bench.open();
    if (workspace !== undefined) access.setReadable(workspace, false);
    await bench.open({ config: { workspaceIds: [] } });
    expect(await close()).toMatchObject({ state: "open" });
    const open = await close();
    const of = open.state === "open" ? open.open.filter(({ workspaceId }) => workspaceId === partial) : [];
    expect(of).toHaveLength(lacking());
    expect(of[0]).toMatchObject({ access: "unlisted", reason: "missing" });
  });

  test("stands in the close as left out, and not in its totals, if it is named", async () => {
    const closed = await close({ without: [partial] });
    expect(closed).toMatchObject({ state: "closed", traces: booked(), without: [partial] });
    expect(await totals()).toEqual(
      ["api_key", "project", "user", "workspace"].map((group_by) => ({
        group_by,
        closed: booked(),
        adjustment: 0,
        current: booked(),
      })),
    );
    const workspaces = await bench.sql(
      `SELECT workspace_id, is_left_out, closed_traces::integer, settle_after_seconds::integer
       FROM reporting.usage_month_close_workspace ORDER BY is_left_out`,
    );
    expect(workspaces).toEqual([
      {
        ...{ workspace_id: bench.workspaceIds[0], is_left_out: false },
        ...{ closed_traces: booked(), settle_after_seconds: 259_200 },
      },
      { workspace_id: partial, is_left_out: true, closed_traces: null, settle_after_seconds: 259_200 },
    ]);
    // A month closes once, however often it is asked for.
    expect(await close()).toMatchObject({ state: "closed_before", without: [partial], adjusted: 0 });
    await load();
    expect(await close()).toMatchObject({ state: "closed_before", without: [partial], adjusted: 0 });
  });

  test("does not close it for no workspace at all", async () => {
    await expect(close({ without: bench.workspaceIds })).rejects.toMatchObject({
      code: "workspaces_unknown",
      message: expect.stringContaining("no workspace to close the month for"),
      next: expect.stringContaining("leave out fewer workspaces"),
    });
  });
});

test("a workspace that left the listing before the month, and has nothing in it, does not keep it open", async () => {
  await load();
  await bench.reconcile({ range: month });
  await bench.sql(
    `WITH e AS (INSERT INTO usage.entity (source_id, dimension, external_id) SELECT source_id, 'workspace', 'gone' FROM usage.source RETURNING entity_id)
     INSERT INTO usage.workspace (entity_id, unlisted_since) SELECT entity_id, $1 FROM e`,
    [new Date(month.start - DAY_MS).toISOString()],
  );
  await bench.sql("UPDATE usage.source SET workspace_ids = '{}'");
  expect(await close()).toMatchObject({ state: "closed" });
});

test("a load between check and totals waits, and becomes an adjustment", async () => {
  await load();
  await bench.reconcile({ range: month });
  const closed = booked();
  bench.standin.ledger.change(senderOn(bench.standin, WORKSPACE, month.start + 9 * DAY_MS), 6);
  // Contact comes first: it would wait for the close too, and then the load could not overtake it.
  const source = await bench.open();
  const plan = { wanted: [{ stride: "day" as const, range: month }], reprocess: "all" as const };
  const slices = await planSource(source, plan);
  const waiting = () =>
    bench.sql<{ query: string }>(
      "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    );
  const { running, loading } = await bench.store.transaction(async ({ client }) => {
    // Readers pass, and so does the check; the totals are written only when this transaction has ended.
    await client.query("LOCK TABLE usage.closed_total IN SHARE MODE");
    const running = close();
    await poll(async () => (await waiting()).length === 1, { deadlineMs: 20_000 });
    let isLoaded = false;
    const loading = runInline(source, slices).then(() => {
      isLoaded = true;
    });
    await poll(async () => isLoaded || (await waiting()).length > 1, { deadlineMs: 20_000 });
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
     FROM reporting.usage_month_close WHERE group_by = 'user' AND dimension_id = $1`,
    [added.user.id],
  );
  expect(rows).toEqual([{ closed_traces: 0, adjustment_traces: 4, current_traces: 4 }]);
  expect(await totals()).toMatchObject(Array.from({ length: 4 }, () => ({ adjustment: 4 })));
});

test("a close keeps the prices it was made with; a later price is an adjustment", async () => {
  await load();
  await bench.reconcile({ range: month });
  const price = (unit: string) =>
    bench.sql(
      `WITH k AS (INSERT INTO usage.sku (name) VALUES ('base') ON CONFLICT (name) DO UPDATE SET name = 'base' RETURNING sku_id)
       INSERT INTO usage.price (sku_id, unit_price, currency, valid_from) SELECT sku_id, ${unit}, 'USD', '2020-01-01' FROM k`,
    );
  const costs = () =>
    bench.sql(
      `SELECT unit_price::float, closed_traces::integer, closed_cost::float, adjustment_cost::float, current_cost::float
       FROM reporting.usage_month_close_cost ORDER BY unit_price`,
    );
  await price("0.5");
  await close();
  const [traces, cost] = [booked(), booked() / 2];
  expect(await costs()).toEqual([
    { unit_price: 0.5, closed_traces: traces, closed_cost: cost, adjustment_cost: 0, current_cost: cost },
  ]);
  expect(await adjustedCosts(bench.store.db)).toEqual([]);
  const shown = () =>
    bench.sql(
      `SELECT v.of, sum(v.cost)::float AS cost, bool_and(v.is_closed) AS is_closed
       FROM (SELECT 'workspace' AS of, estimated_cost AS cost, is_closed, usage_date FROM reporting.fct_cost_workspace_daily
             UNION ALL SELECT 'user', estimated_cost, is_closed, usage_date FROM reporting.fct_cost_user_daily) v
       WHERE usage_date >= $1::date AND usage_date < $2::date GROUP BY 1 ORDER BY 1`,
      [month.start, month.end].map((ms) => new Date(ms).toISOString().slice(0, 10)),
    );
  const shownCosts = ["user", "workspace"].map((of) => ({ of, cost, is_closed: true }));
  expect(await shown()).toEqual(shownCosts);
  await bench.sql("DELETE FROM usage.price");
  await price("0.25");
  expect(await shown()).toEqual(shownCosts);
  expect(await adjustedCosts(bench.store.db)).toEqual([
    `default ${new Date(month.start).toISOString().slice(0, 7)}`,
  ]);
  const [closed] = await bench.sql<{ closeId: number; sourceId: number; monthStart: string }>(
    `SELECT close_id AS "closeId", source_id AS "sourceId", month_start::text AS "monthStart" FROM usage.month_close`,
  );
  if (closed === undefined) throw new Error("not closed");
  const ofClose = (most: number) => closedCosts(bench.store.db, { ...closed, most });
  const rows = [
    {
      ...{ unitPrice: "0.5", closedCost: String(cost), adjustmentCost: String(-cost), currentCost: "0" },
      ...{ sku: "base", currency: "USD", workspaceId: bench.workspaceIds[0] },
    },
    {
      ...{ unitPrice: "0.25", closedCost: "0", currentCost: String(cost / 2) },
      ...{ adjustmentCost: String(cost / 2), sku: "base", currency: "USD" },
    },
  ];
  expect(await ofClose(10)).toMatchObject({ rows, total: 2 });
  expect(await ofClose(1)).toMatchObject({ rows: rows.slice(0, 1), total: 2 });
  expect(await closedCosts(bench.store.db, { ...closed, closeId: closed.closeId + 1, most: 1 })).toEqual({
    ...{ rows: [], total: 0 },
  });
  expect(await costs()).toEqual([
    ...[
      {
        unit_price: 0.25,
        closed_traces: 0,
        closed_cost: 0,
        adjustment_cost: cost / 2,
        current_cost: cost / 2,
      },
    ],
    ...[
      { unit_price: 0.5, closed_traces: traces, closed_cost: cost, adjustment_cost: -cost, current_cost: 0 },
    ],
  ]);
});
