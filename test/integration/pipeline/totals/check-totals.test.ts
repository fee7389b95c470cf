import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { controlWindows } from "../../../../src/domain/planning/control.ts";
import { intersect } from "../../../../src/domain/time/intervals.ts";
import { DAY_MS, floorToGrid, HOUR_MS, STRIDE_MS } from "../../../../src/domain/time/stride.ts";
import type { Interval } from "../../../../src/domain/time/window.ts";
import { checkTotals } from "../../../../src/pipeline/totals/check-totals.ts";
import { alertFacts } from "../../../../src/store/report/alerts.ts";
import { metricFacts, sourceStatuses } from "../../../../src/store/report/overview.ts";
import { type Bench, farFromTheNextHour, senderOn, setup } from "../../../support/source.ts";
import { differences, inLedger, inStore } from "../../../support/tables.ts";

/** Totals prove the days: what was restated is loaded anew, what the platform contradicts is shown on its day. */

const WORKSPACE = 1;

/** One workspace with days that reach back far enough for windows of weeks and months; hours play no part. */
async function loaded(days: number, standin: { align?: "window" | "epoch" } = {}): Promise<Bench> {
  const bench = await setup({
    days,
    workspaces: [WORKSPACE],
    hourlyForMs: HOUR_MS,
    standin: { scale: 0.34, ...standin },
  });
  await bench.fetch({
    wanted: [{ stride: "day", range: { start: bench.dataStart, end: bench.today } }],
    reprocess: "missing",
  });
  return bench;
}

const check = async (bench: Bench, reach: "month" | "quarter" | "all" = "all") => {
  const source = await bench.open();
  const before = bench.standin.requests.count;
  const result = await checkTotals(source, reach);
  return { ...result, seen: bench.standin.requests.count - before };
};

/** A day in the middle of settled weeks, not at their edge. */
const dayInside = ({ today }: Bench, weeksAgo: number, day = 3) =>
  floorToGrid(today - weeksAgo * STRIDE_MS.week, STRIDE_MS.week) + day * DAY_MS;

const storeIsLedger = async (bench: Bench) => {
  const { standin, workspaceIds, dataStart: start, today: end } = bench;
  const ledger = inLedger(standin, { stride: "day", range: { start, end }, workspaceIds });
  expect(differences(await inStore(bench, ["day"]), ledger)).toEqual([]);
};

const errorOf = (one: { storedTraces: number | null; controlTraces: number | null }) =>
  (one.controlTraces ?? 0) - (one.storedTraces ?? 0);

describe.each(["window", "epoch"] as const)("on a server that aligns buckets to the %s", (align) => {
  test("few requests prove clean days, and only the ends wait", async () => {
    const bench = await loaded(200, { align });
    const result = await check(bench);
    expect(result).toMatchObject({ findings: [], failed: [], restated: 0, differences: 0 });
    // Workspace, project, user and key; months, and weeks at either end.
    expect(result.requests).toBeLessThanOrEqual(12);
    expect(result.seen).toBe(result.requests);
    expect(result.daysProved + result.daysWaiting).toBe(4 * 197);
    expect(result.daysWaiting).toBeLessThanOrEqual(4 * 12);
  });

  test("a count that the platform restated is loaded again and leaves no finding", async () => {
    const bench = await loaded(120, { align });
    const sender = senderOn(bench.standin, WORKSPACE, dayInside(bench, 5));
    bench.standin.ledger.change(sender, 7);
    const result = await check(bench, "quarter");
    expect(result).toMatchObject({ findings: [], restated: 4 });
    await storeIsLedger(bench);
    expect(await bench.sql("SELECT FROM reporting.usage_reconciliation")).toEqual([]);
    expect(await check(bench, "quarter")).toMatchObject({ restated: 0, findings: [] });
  });

  test("a window in which the platform contradicts itself is kept with both numbers, and asked about once", async () => {
    const bench = await loaded(150, { align });
    const day = dayInside(bench, 9);
    const cell = senderOn(bench.standin, WORKSPACE, day);
    bench.standin.discrepancies.push({ stride: "day", groupBy: "project", cell, delta: 5 });
    await bench.fetch({
      wanted: [{ stride: "day", range: { start: day - 3 * DAY_MS, end: day + 3 * DAY_MS } }],
      reprocess: "all",
    });
    const clean = await check(bench, "all");
    const showsDay = ({ findings }: typeof clean) => {
      const found = findings.filter((one) => one.kind === "stride_total");
      expect(found.length).toBeGreaterThan(0);
      for (const one of found) {
        const about = { groupBy: "project", dimensionId: cell.project.id, state: "platform_disagrees" };
        expect(one).toMatchObject(about);
        expect(intersect([one], [{ start: day, end: day + DAY_MS }])).toHaveLength(1);
        expect(errorOf(one)).toBe(-5);
      }
    };
    showsDay(clean);
    // Project names more on that day than the workspace has.
    expect(clean.findings.filter((one) => one.kind === "grouping_total")).toMatchObject([
      { groupBy: "project", start: day, state: "platform_disagrees" },
    ]);

    const quarter = await check(bench, "quarter");
    showsDay(quarter);
    const again = await check(bench, "quarter");
    expect(again.findings).toEqual(quarter.findings);
    expect(again.seen).toBeLessThanOrEqual(8);

    bench.standin.discrepancies.length = 0;
    expect(await check(bench, "all")).toMatchObject({ findings: [], restated: 1 });
    await storeIsLedger(bench);
    const [closed] = await bench.sql<{ open: number }>(
      "SELECT count(*) FILTER (WHERE state <> 'closed') AS open FROM usage.control_difference",
    );
    expect(closed).toEqual({ open: 0 });
  });
});

describe("groupings", () => {
  test("traces that a dimension does not name are shown as unattributed and are no difference", async () => {
    const bench = await loaded(8);
    const cell = senderOn(bench.standin, WORKSPACE, bench.dataStart + DAY_MS);
    bench.standin.discrepancies.push({ stride: "day", groupBy: "user", cell, delta: -1 });
    await bench.fetch({
      wanted: [{ stride: "day", range: { start: bench.dataStart, end: bench.today } }],
      reprocess: "all",
    });
    const result = await check(bench, "month");
    const again = await check(bench, "all");
    for (const { findings } of [result, again].filter((one) => one.range.start <= cell.at)) {
      expect(findings).toMatchObject([{ kind: "grouping_total", groupBy: "user", state: "unattributed" }]);
    }
    expect(again.differences).toBe(0);
    expect(
      await bench.sql(
        // Beside those of records without an id, of which the stand-in has some every day.
        `SELECT usage_date::text, group_by, unattributed_traces - coalesce(n.traces, 0) AS unnamed
         FROM reporting.usage_unattributed_daily
         LEFT JOIN (
           SELECT (period_start AT TIME ZONE 'UTC')::date AS usage_date, workspace_id, group_by, traces
           FROM reporting.usage_record WHERE stride = 'day' AND dimension_id = '(none)'
         ) n USING (usage_date, workspace_id, group_by)
         WHERE unattributed_traces <> coalesce(n.traces, 0)`,
      ),
    ).toEqual([
      {
        usage_date: new Date(bench.dataStart + DAY_MS).toISOString().slice(0, 10),
        group_by: "user",
        unnamed: 1,
      },
    ]);
  });

  test("a record missing from the store is fetched again", async () => {
    const bench = await loaded(8);
    await bench.sql(
      `DELETE FROM usage.dated_record r USING usage.series s, usage.scope c
       WHERE s.series_id = r.series_id AND c.scope_id = s.scope_id AND c.group_by = 'project'
         AND r.bucket_start = $1::date AND r.traces > 0`,
      [new Date(bench.dataStart).toISOString().slice(0, 10)],
    );
    expect(await check(bench, "all")).toMatchObject({ findings: [] });
    await storeIsLedger(bench);
  });
});

test("a day in two windows that overlap is shown in each of them, with its whole error", async () => {
  const { days, shared } = overlapFor(floorToGrid(await farFromTheNextHour(), DAY_MS));
  const bench = await loaded(days);
  const cell = senderOn(bench.standin, WORKSPACE, shared.start);
  bench.standin.discrepancies.push({ stride: "day", groupBy: "workspace", cell, delta: 4 });
  const wanted = [{ stride: "day", range: shared }] as const;
  await bench.fetch({ wanted, reprocess: "all", groupings: ["workspace"] });
  for (const reach of ["all", "quarter", "all"] as const) {
    const found = (await check(bench, reach)).findings.filter((one) => one.kind === "stride_total");
    if (reach === "quarter" && found.length === 0) continue;
    expect(found.length).toBeLessThanOrEqual(2);
    for (const one of found) {
      expect(one).toMatchObject({ groupBy: "workspace" });
      expect(intersect([one], [shared])).toEqual([shared]);
      expect(errorOf(one)).toBe(-4);
    }
  }
});

test("an error that only the total's own stride has is shown on its bucket", async () => {
  const bench = await loaded(200);
  const settled = { start: bench.dataStart, end: bench.today - 3 * DAY_MS };
  const month = controlWindows(settled, settled).find(({ stride }) => stride === "month");
  if (month === undefined) throw new Error("no month");
  const cell = senderOn(bench.standin, WORKSPACE, month.start + 40 * DAY_MS);
  bench.standin.discrepancies.push({ stride: "month", groupBy: "user", cell, delta: 7 });
  const found = (await check(bench)).findings.filter((one) => one.kind === "stride_total");
  expect(found).toMatchObject([{ groupBy: "user", state: "platform_disagrees" }]);
  expect((found[0]?.end ?? 0) - (found[0]?.start ?? 0)).toBe(STRIDE_MS.month);
  expect(found.map(errorOf)).toEqual([7]);
});

test("days of a total that differs are not counted as proved, whoever found the difference", async () => {
  const bench = await loaded(200);
  const clean = await check(bench);
  const settled = { start: bench.dataStart, end: bench.today - 3 * DAY_MS };
  const month = controlWindows(settled, settled).find(({ stride }) => stride === "month");
  if (month === undefined) throw new Error("no month");
  const cell = senderOn(bench.standin, WORKSPACE, month.start + 40 * DAY_MS);
  bench.standin.discrepancies.push({ stride: "month", groupBy: "user", cell, delta: 7 });
  const wrong = await check(bench);
  expect(wrong).toMatchObject({ daysDisproved: 30, differences: 1, daysNotFinal: 0 });
  expect(wrong.daysProved).toBe(clean.daysProved - 30);
  // A check of less of the time says the same about the part that both are about.
  const quarter = await check(bench, "quarter");
  const shared = intersect(wrong.findings, [quarter.range]);
  expect(quarter.daysDisproved).toBe(shared.reduce((sum, { start, end }) => sum + (end - start) / DAY_MS, 0));
  // So does a difference from the export.
  await bench.sql(
    `INSERT INTO usage.reconciliation_difference (scope_id, external_id, bucket_start, kind, fetch_number)
     SELECT scope_id, 'p', $1, 'missing_in_store', 1 FROM usage.scope WHERE group_by = 'project' AND stride = 'day' AND workspace_id = (
       SELECT entity_id FROM usage.entity WHERE external_id = $2)`,
    [new Date(month.start), bench.workspaceIds[0]],
  );
  expect(await check(bench)).toMatchObject({ daysProved: clean.daysProved - 31, daysDisproved: 31 });
});

test("days that are not loaded and windows without proven access are counted as not checked", async () => {
  const bench = await loaded(60);
  await bench.sql(
    `DELETE FROM usage.coverage c USING usage.scope s
     WHERE s.scope_id = c.scope_id AND s.group_by = 'user' AND c.period_start <= $1 AND c.period_end > $1`,
    [new Date(bench.today - 40 * DAY_MS)],
  );
  const [lost] = await bench.sql<{ days: number }>(
    `SELECT 57 - sum(extract(epoch FROM period_end - period_start) / 86400)::integer AS days
     FROM usage.coverage JOIN usage.scope USING (scope_id) WHERE group_by = 'user' AND stride = 'day' AND settled`,
  );
  expect(lost?.days).toBeGreaterThan(0);
  expect(await check(bench)).toMatchObject({ daysNotFinal: lost?.days, unverified: 0 });
  const gone = bench.standin.organisation.workspaces[WORKSPACE];
  if (gone === undefined) throw new Error("no workspace");
  bench.standin.access.setReadable(gone, false);
  const blind = await check(bench);
  expect(blind.unverified).toBeGreaterThan(0);
  expect(blind.daysProved).toBe(0);
});

describe("a known finding", () => {
  /** A day on which the platform contradicts itself by five, known from an earlier check; and its window of the quarter. */
  async function known() {
    const bench = await loaded(120);
    const day = dayInside(bench, 6);
    const cell = senderOn(bench.standin, WORKSPACE, day);
    bench.standin.discrepancies.push({ stride: "day", groupBy: "project", cell, delta: 5 });
    const range = { start: day, end: day + DAY_MS };
    await bench.fetch({ wanted: [{ stride: "day", range }], reprocess: "all", groupings: ["project"] });
    const { findings } = await check(bench, "quarter");
    expect(findings.filter(({ kind }) => kind === "stride_total")).toHaveLength(1);
    return { bench, cell, day };
  }

  test("does not mask a new error of the same id in its window", async () => {
    const { bench, cell, day } = await known();
    await bench.sql("DELETE FROM usage.restatement");
    // The same project on another day of the same week, restated by project alone: no other dimension shows it.
    const next = { ...cell, at: cell.at + DAY_MS };
    for (const stride of ["day", "week", "month"] as const) {
      bench.standin.discrepancies.push({ stride, groupBy: "project", cell: next, delta: 3 });
    }
    expect((await check(bench, "quarter")).restated).toBe(1);
    expect(
      await bench.sql(
        "SELECT dimension_id, period_start, new_traces - old_traces AS more FROM reporting.usage_restatement",
      ),
    ).toEqual([{ dimension_id: cell.project.id, period_start: new Date(day + DAY_MS), more: 3 }]);
  });

  test("of a dimension's day does not mask a new error of that day", async () => {
    const bench = await loaded(12);
    const day = bench.today - 6 * DAY_MS;
    const cell = senderOn(bench.standin, WORKSPACE, day);
    bench.standin.discrepancies.push({ stride: "day", groupBy: "project", cell, delta: 5 });
    const range = { start: day, end: day + DAY_MS };
    await bench.fetch({ wanted: [{ stride: "day", range }], reprocess: "all", groupings: ["project"] });
    await check(bench, "quarter");
    expect(await check(bench, "quarter")).toMatchObject({ restated: 0 });
    // A record of that day is lost from the store.
    await bench.sql(
      `UPDATE usage.dated_record r SET traces = r.traces - 2 FROM usage.series s JOIN usage.scope c USING (scope_id)
       JOIN usage.entity e USING (entity_id)
       WHERE s.series_id = r.series_id AND c.stride = 'day' AND c.group_by = 'project' AND e.external_id = $1
         AND r.bucket_start = ($2::timestamptz AT TIME ZONE 'UTC')::date`,
      [cell.project.id, new Date(day)],
    );
    expect(await check(bench, "quarter")).toMatchObject({ restated: 1 });
  });

  test("of a workspace that is no longer configured ends, and is found again when it is", async () => {
    const { bench } = await known();
    const state = async () => ({
      kept: (await bench.sql<{ state: string }>("SELECT DISTINCT state FROM usage.control_difference")).map(
        (row) => row.state,
      ),
      alerts: (await alertFacts(bench.store.db, 1)).controlTotals.count,
      status: (await sourceStatuses(bench.store.db))[0]?.platformDisagrees,
      metrics: (await metricFacts(bench.store.db)).differences.length,
    });
    const standing = { kept: ["platform_disagrees"], alerts: 2, status: 2, metrics: 2 };
    expect(await state()).toEqual(standing);
    const other = bench.standin.organisation.workspaces[0]?.id ?? "";
    await checkTotals(await bench.open({ config: { workspaceIds: [other] } }), "quarter");
    expect(await state()).toEqual({ kept: ["not_configured"], alerts: 0, status: 0, metrics: 0 });
    expect(await check(bench, "quarter")).toMatchObject({ differences: 2 });
    expect(await state()).toEqual(standing);
  });
});

test("days that were loaded again after a total was requested are not compared with it", async () => {
  const bench = await loaded(60);
  const day = dayInside(bench, 4);
  const { requests } = await check(bench);
  const before = bench.standin.requests.count;
  const source = await bench.open({
    opened: ({ billing }) => {
      const { usage } = billing;
      let isFirst = true;
      Object.assign(billing, {
        usage: async (...asked: Parameters<typeof usage>) => {
          const answer = await usage(...asked);
          if (isFirst) {
            isFirst = false;
            // The answer is on its way; meanwhile a restatement is loaded.
            bench.standin.ledger.change(senderOn(bench.standin, WORKSPACE, day), 4);
            const range = { start: day, end: day + DAY_MS };
            const wanted = [{ stride: "day" as const, range }];
            await bench.fetch({ wanted, reprocess: "all", groupings: ["workspace"] });
          }
          return answer;
        },
      });
    },
  });
  const result = await checkTotals(source, "all");
  // That window is not compared: no difference, no second look, and nothing of it is proved.
  expect(result.requests - requests).toBeLessThanOrEqual(6);
  expect(bench.standin.requests.count).toBeGreaterThan(before);
  expect(await bench.sql("SELECT FROM usage.control_difference")).toEqual([]);
  const proved = result.daysProved;
  expect((await check(bench)).daysProved).toBeGreaterThan(proved);
});

/** How many days before today have windows that overlap: too few for weeks before the first month. */
function overlapFor(today: number): { days: number; shared: Interval } {
  for (let days = 130; days < 230; days++) {
    const settled = { start: today - days * DAY_MS, end: today - 3 * DAY_MS };
    const windows = controlWindows(settled, settled);
    const [shared] = windows.flatMap((one, i) => intersect([one], windows.slice(i + 1)));
    if (shared !== undefined) return { days, shared: { ...shared, end: shared.start + DAY_MS } };
  }
  throw new Error("no windows overlap");
}

test("whatever was restated or contradicts itself, days end as the platform gives them and each window shows its error", {
  timeout: 180_000,
}, async () => {
  const bench = await loaded(130);
  const { standin } = bench;
  const span = { start: dayInside(bench, 17, 0), end: dayInside(bench, 2, 0) };
  const days = (span.end - span.start) / DAY_MS;
  const change = fc.record({ day: fc.nat(days - 1), delta: fc.integer({ min: -3, max: 9 }) });
  const holds = async (given: { restated: typeof changes; contradicted: typeof changes }) => {
    standin.discrepancies.length = 0;
    const wrong = new Map<number, number>();
    for (const { day, delta } of given.restated) {
      standin.ledger.change(senderOn(standin, WORKSPACE, span.start + day * DAY_MS), delta);
    }
    for (const { day, delta } of given.contradicted) {
      const at = span.start + day * DAY_MS;
      standin.discrepancies.push({
        stride: "day",
        groupBy: "workspace",
        cell: senderOn(standin, WORKSPACE, at),
        delta: delta + 4,
      });
      wrong.set(at, (wrong.get(at) ?? 0) + delta + 4);
    }
    // The wrong days are stored as the platform gives them; what was restated is for the check to find.
    await bench.fetch({
      wanted: [{ stride: "day", range: span }],
      reprocess: "all",
      groupings: ["workspace"],
    });
    const { findings, failed } = await check(bench);
    expect(failed).toEqual([]);
    const found = findings.filter((one) => one.kind === "stride_total" && one.groupBy === "workspace");
    const shown = ([at]: [number, number]) => found.some(({ start, end }) => at >= start && at < end);
    for (const one of found) {
      const inside = [...wrong].filter(([at]) => at >= one.start && at < one.end);
      expect(errorOf(one)).toBe(-inside.reduce((sum, [, delta]) => sum + delta, 0));
    }
    // Two errors in one window may cancel out. A window that shows nothing must not hide one.
    expect([...wrong].filter((day) => !shown(day)).reduce((sum, [, delta]) => sum + delta, 0)).toBe(0);
    standin.discrepancies.length = 0;
    await check(bench);
    await storeIsLedger(bench);
  };
  const changes: { day: number; delta: number }[] = [];
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        restated: fc.array(change, { maxLength: 4 }),
        contradicted: fc.array(change, { maxLength: 3 }),
      }),
      holds,
    ),
    { numRuns: 8 },
  );
});
