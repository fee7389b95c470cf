import { DateTime } from "luxon";
import { beforeEach, expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../../src/domain/time/stride.ts";
import { type CloseResult, closeMonth } from "../../../src/store/report/month-close.ts";
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

async function close(acceptDisagreements = false): Promise<CloseResult> {
  const { sourceId } = await bench.open();
  return closeMonth(
    bench.store,
    {
      sourceId,
      range: month,
      monthStart: new Date(month.start).toISOString().slice(0, 10),
      workspaceIds: bench.workspaceIds,
    },
    { acceptDisagreements },
  );
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
  await load();
  const unproved = await close();
  expect(reasons(unproved)).toEqual(["not_reconciled"]);
  expect(unproved).toMatchObject({ open: { length: 4 * Math.round((month.end - month.start) / DAY_MS) } });

  await bench.reconcile({ range: month });
  expect(await close()).toMatchObject({ state: "closed", traces: booked(), accepted: 0 });
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
  expect(await close(true)).toMatchObject({ state: "closed", accepted: 1 });
});

test("a day under way keeps its month open, whatever is accepted", async () => {
  const end = bench.today;
  month = { start: end - 2 * DAY_MS, end };
  await load();
  const { sourceId } = await bench.open();
  const result = await closeMonth(
    bench.store,
    { sourceId, range: month, monthStart: "2026-01-01", workspaceIds: bench.workspaceIds },
    { acceptDisagreements: true },
  );
  expect(reasons(result)).toEqual(["provisional"]);
});
