import { sql } from "kysely";
import { expect, test } from "vitest";
import { monthAt } from "../../../../src/core/domain/months/month.ts";
import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import { lockScopes } from "../../../../src/core/store/catalog/scopes.ts";
import { openIncidents } from "../../../../src/features/alerts/conditions.ts";
import { closeSources } from "../../../../src/features/close/close.ts";
import { limitUses } from "../../../../src/features/costs/bill-terms.store.ts";
import { readBill } from "../../../../src/features/costs/read-bill.ts";
import { describeLimit, marksPassed } from "../../../../src/features/costs/usage-limit.ts";
import { poll } from "../../../support/poll.ts";
import { type Bench, senderOn, setup } from "../../../support/source.ts";
import { lockWaits } from "../../../support/store.ts";

const read = async (bench: Bench) => readBill(await bench.open(), { reach: "month", isPatient: false });
const uses = async (bench: Bench) => limitUses(bench.store.db, (await bench.open()).sourceId);

test("limits for each project stand beside that of their workspace, and nothing is compared with them", async () => {
  const bench = await setup({ days: 3, workspaces: [0] });
  // To the end of today, so that some of the month is loaded on its first day too.
  const range = { start: bench.dataStart, end: bench.today + DAY_MS };
  await bench.fetch({ wanted: [{ stride: "day", range }], reprocess: "all" });
  const [workspaceId = ""] = bench.workspaceIds;
  const limit = { workspaceId, limitType: "monthly_traces" };
  bench.standin.bill.limits.push(
    { ...limit, value: 500, scope: "workspace" },
    { ...limit, value: 7, scope: "project" },
    { ...limit, value: 9, scope: "project" },
  );
  expect(await read(bench)).toMatchObject({ parts: { usage_limits: { refusal: null } }, failed: [] });
  const found = (await uses(bench)).map(({ limitType, value, traces }) => [
    limitType,
    value,
    traces !== null,
  ]);
  expect(Object.fromEntries(found.map(([type, ...rest]) => [type, rest]))).toEqual({
    monthly_traces: [500, true],
    "monthly_traces per project": [7, false],
  });
});

test("a limit is warned of at 50, 75, 90 and 100 percent of the loaded month, with the day it is reached at the final days' pace", async () => {
  const bench = await setup({ days: 40, workspaces: [0, 1], standin: { scale: 0.34 } });
  await bench.fetch({
    wanted: [{ stride: "day", range: { start: bench.dataStart, end: bench.today } }],
    reprocess: "all",
  });
  const month = monthAt(bench.today);
  const start = Date.parse(month.start);
  const [workspaceId = "", other = ""] = bench.workspaceIds;
  const countOf = (id: string, end: number) =>
    bench.standin.organisation.streams
      .filter(({ project }) => project.workspace.id === id)
      .reduce((sum, stream) => sum + (bench.standin.ledger.counts(stream, [start, end])[0] ?? 0), 0);
  const isLoaded = bench.today > start;
  const traces = countOf(workspaceId, bench.today);
  const finalDays = Math.max(0, (bench.today - 3 * DAY_MS - start) / DAY_MS);
  const finalTraces = countOf(workspaceId, start + finalDays * DAY_MS);

  const { limits } = bench.standin.bill;
  const limited = (value: number | null, id: string | null = workspaceId, limitType = "monthly_traces") => {
    limits.splice(0, limits.length, { workspaceId: id, limitType, value });
  };
  for (const [value, marks] of [
    [null, 0],
    [traces * 2 + 1, 0],
    [traces * 2, 1],
    [Math.floor(traces / 0.75), 2],
    [Math.floor(traces / 0.9), 3],
    [traces + 1, 3],
    [traces, 4],
    [0, 4],
  ] as const) {
    limited(value);
    expect(await read(bench)).toMatchObject({
      parts: { usage_limits: { read: 1, refusal: null } },
      failed: [],
    });
    const [use] = await uses(bench);
    expect(use).toMatchObject({ workspaceId, limitType: "monthly_traces", value, month: month.start });
    if (!isLoaded || use === undefined) continue;
    expect(use).toMatchObject({ traces, isComplete: true, daysFinal: finalDays });
    expect(marksPassed(use), `${value} of ${traces}`).toBe(marks);
    const alerts = (await openIncidents(bench.store.db, { staleAfterMs: DAY_MS, firstSource: "default" }))
      .get("default")
      ?.map(({ kind }) => kind);
    expect(alerts).toEqual(marks > 0 ? ["usage_limit"] : []);
  }

  for (const value of [traces + 1, traces * 2, traces * 50]) {
    limited(value);
    await read(bench);
    const [use] = await uses(bench);
    if (use === undefined || finalTraces === 0) continue;
    const days = Math.ceil((value * finalDays) / finalTraces);
    const day = Math.max(start + (days - 1) * DAY_MS, bench.today);
    const expected =
      start + (days - 1) * DAY_MS < Date.parse(month.end) ? new Date(day).toISOString().slice(0, 10) : null;
    expect(use.reachedOn).toBe(expected);
    const [alert] =
      (await openIncidents(bench.store.db, { staleAfterMs: DAY_MS, firstSource: "default" })).get(
        "default",
      ) ?? [];
    if (alert !== undefined) expect(alert.severity).toBe(expected === null ? "warning" : "critical");
    expect(describeLimit(use)).toContain(`At the pace of the ${finalDays} final`);
  }

  limits.splice(
    0,
    limits.length,
    { workspaceId: null, limitType: "monthly_traces", value: 10 },
    { workspaceId: "another", limitType: "monthly_traces", value: 10 },
    { workspaceId, limitType: "seats", value: 10 },
  );
  bench.standin.bill.rejecting.set(other, "payload_size");
  await read(bench);
  const shown = new Map((await uses(bench)).map((one) => [`${one.workspaceId} ${one.limitType}`, one]));
  expect(shown.get("(all) monthly_traces")?.traces).toBe(
    isLoaded ? traces + countOf(other, bench.today) : null,
  );
  expect(shown.get("another monthly_traces")).toMatchObject({ traces: null, percent: null });
  expect(shown.get(`${workspaceId} seats`)).toMatchObject({ traces: null, percent: null });
  expect(shown.get(`${other} payload_size`)).toMatchObject({ isRejecting: true });
});

test("a billing period begins where the one before it ended, and the start of the first one is inferred", async () => {
  const bench = await setup({ days: 6, workspaces: [0] });
  bench.standin.bill.periodDay = 15;
  const periods = () =>
    bench.sql<Record<string, unknown>>(
      `SELECT period_start::text, period_end::text, is_start_known, is_calendar_month, is_current, plan_tier
       FROM reporting_detail.dim_billing_period ORDER BY period_end`,
    );
  await read(bench);
  const { start, end } = bench.standin.bill.period();
  const day = (ms: number) => new Date(ms).toISOString().slice(0, 10);
  expect(await periods()).toEqual([
    {
      period_start: day(Math.max(start, bench.dataStart)),
      period_end: day(end),
      is_start_known: false,
      is_calendar_month: false,
      is_current: true,
      plan_tier: "plus",
    },
  ]);
  bench.standin.setClock({ frozenAt: end + DAY_MS });
  await read(bench);
  await read(bench);
  expect(await periods()).toMatchObject([
    { period_end: day(end) },
    { period_start: day(end), is_start_known: true, is_current: false },
  ]);
});

test("a billing period closes once all of its days are final and reconciled, and later changes stand beside it", async () => {
  const bench = await setup({ days: 50, workspaces: [0], standin: { scale: 0.34 } });
  const day = (ms: number) => new Date(ms).toISOString().slice(0, 10);
  const shift = new Date(bench.today - 37 * DAY_MS).getUTCDate() === 1 ? DAY_MS : 0;
  const [before, end] = [bench.today - 37 * DAY_MS - shift, bench.today - 10 * DAY_MS - shift];
  const range = { start: before - DAY_MS, end: end + DAY_MS };
  const load = () => bench.fetch({ wanted: [{ stride: "day", range }], reprocess: "all" });
  await load();
  await bench.sql(
    "INSERT INTO usage.billing_period (source_id, ends_at, plan_tier, read_at) SELECT 1, e, 'plus', now() FROM unnest($1::timestamptz[]) e",
    [[day(before), day(end)]],
  );
  const close = (on: number) =>
    closeSources(bench.store, {
      period: day(on),
      slugs: [],
      settleAfterMs: 3 * DAY_MS,
      by: { name: null, role: "operator", via: "command" },
    });
  const code = (on: number) => close(on).catch(({ code }) => code);
  expect(await code(before - DAY_MS)).toBe("period_start_unknown");
  expect(await code(end)).toBe("period_unknown");

  const [open] = await close(before);
  expect(open?.result).toMatchObject({
    state: "open",
    open: { 0: { reason: "not_reconciled", day: before } },
  });
  await bench.reconcile({ range: { start: before, end } });
  const traces = bench.standin.organisation.streams
    .filter(({ project }) => project.workspace.id === bench.workspaceIds[0])
    .reduce((sum, stream) => sum + (bench.standin.ledger.counts(stream, [before, end])[0] ?? 0), 0);
  const { closing } = await bench.store.transaction(async ({ db }) => {
    const { rows: scopes } = await sql<{ id: number }>`select scope_id as id from usage.scope`.execute(db);
    await lockScopes(
      db,
      scopes.map(({ id }) => id),
    );
    let isOver = false;
    const closing = close(end - DAY_MS).finally(() => {
      isOver = true;
    });
    await poll(async () => isOver || (await lockWaits(bench.store)) === 1);
    expect(isOver).toBe(false);
    return { closing };
  });
  expect((await closing)[0]?.result).toMatchObject({ state: "closed", traces, accepted: 0 });

  const [kept] = await bench.sql<{ detail: string }>(
    `SELECT settle_after_seconds::integer AS final, accepted_disagreements AS accepted, a.action, a.detail
     FROM usage.close JOIN usage.operator_action a USING (source_id)`,
  );
  expect(kept).toMatchObject({ final: 3 * 86_400, accepted: 0, action: "close" });
  expect(kept?.detail).toMatch(
    new RegExp(`^${day(before)} to ${day(end)}: ${traces} traces in \\d+ totals, without costs$`),
  );

  bench.standin.ledger.change(senderOn(bench.standin, 0, before + 5 * DAY_MS), 6);
  await load();
  expect((await close(before))[0]?.result).toMatchObject({ state: "closed_before", adjusted: 4 });
  expect(
    await bench.sql(
      `SELECT period_start::text, period_end::text, group_by, sum(closed_traces)::bigint AS closed,
              sum(adjustment_traces)::bigint AS adjusted
       FROM reporting_detail.fct_close WHERE group_by = 'workspace' GROUP BY 1, 2, 3`,
    ),
  ).toEqual([
    { period_start: day(before), period_end: day(end), group_by: "workspace", closed: traces, adjusted: 6 },
  ]);
});
