import { describe, expect, test } from "vitest";
import { controlWindows } from "../../../../src/core/domain/planning/windows.ts";
import { intersect } from "../../../../src/core/domain/time/intervals.ts";
import { DAY_MS, floorToGrid, STRIDE_MS } from "../../../../src/core/domain/time/stride.ts";
import type { Interval } from "../../../../src/core/domain/time/window.ts";
import { farFromTheNextHour, senderOn, setReadable, setup } from "../../../support/source.ts";
import { check, errorOf, loaded, storeIsLedger, WORKSPACE } from "./bench.ts";

describe.each(["window", "epoch"] as const)("on a server that aligns buckets to the %s", (align) => {
  test("few requests prove clean days, and only the ends wait", async () => {
    const bench = await loaded(200, { align });
    const result = await check(bench);
    expect(result).toMatchObject({ findings: [], failed: [], restated: 0, differences: 0 });
    expect(result.requests).toBeLessThanOrEqual(12);
    expect(result.seen).toBe(result.requests);
    expect(result.daysProved + result.daysWaiting).toBe(4 * 197);
    expect(result.daysWaiting).toBeLessThanOrEqual(4 * 12);
    expect(await bench.sql("SELECT failures FROM usage.control_check")).toEqual([{ failures: 0 }]);
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
        `SELECT usage_date::text, group_by, unattributed_traces - coalesce(n.traces, 0) AS unnamed
         FROM reporting_detail.usage_unattributed_daily
         LEFT JOIN (
           SELECT (period_start AT TIME ZONE 'UTC')::date AS usage_date, workspace_id, group_by, traces
           FROM reporting_detail.usage_record WHERE stride = 'day' AND dimension_id = '(none)'
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
      `DELETE FROM usage.dated_record r USING usage.series s, usage.trace_scope c
       WHERE s.series_id = r.series_id AND c.scope_id = s.scope_id AND c.group_by = 'project'
         AND r.bucket_start = $1::date AND r.traces > 0`,
      [new Date(bench.dataStart).toISOString().slice(0, 10)],
    );
    expect(await check(bench, "all")).toMatchObject({ findings: [] });
    await storeIsLedger(bench);
  });
});

function overlapFor(today: number): { days: number; shared: Interval } {
  for (let days = 130; days < 230; days++) {
    const final = { start: today - days * DAY_MS, end: today - 3 * DAY_MS };
    const windows = controlWindows(final, final);
    const [shared] = windows.flatMap((one, i) => intersect([one], windows.slice(i + 1)));
    if (shared !== undefined) return { days, shared: { ...shared, end: shared.start + DAY_MS } };
  }
  throw new Error("no windows overlap");
}

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

test("an error that only the total's own stride has is shown on its bucket, whose days are not counted as proved", async () => {
  const bench = await loaded(200);
  const clean = await check(bench);
  const final = { start: bench.dataStart, end: bench.today - 3 * DAY_MS };
  const month = controlWindows(final, final).find(({ stride }) => stride === "month");
  if (month === undefined) throw new Error("no month");
  const cell = senderOn(bench.standin, WORKSPACE, month.start + 40 * DAY_MS);
  bench.standin.discrepancies.push({ stride: "month", groupBy: "user", cell, delta: 7 });
  const wrong = await check(bench);
  const found = wrong.findings.filter((one) => one.kind === "stride_total");
  expect(found).toMatchObject([{ groupBy: "user", state: "platform_disagrees" }]);
  expect(found.map(({ start, end }) => end - start)).toEqual([STRIDE_MS.month]);
  expect(found.map(errorOf)).toEqual([7]);
  expect(wrong).toMatchObject({ daysDisproved: 30, differences: 1, daysNotFinal: 0 });
  expect(wrong.daysProved).toBe(clean.daysProved - 30);
  const quarter = await check(bench, "quarter");
  const shared = intersect(wrong.findings, [quarter.range]);
  expect(quarter.daysDisproved).toBe(shared.reduce((sum, { start, end }) => sum + (end - start) / DAY_MS, 0));
  // So does a difference from the export.
  await bench.sql(
    `INSERT INTO usage.difference (scope_id, compared_with, external_id, period_start, period_end, kind, fetch_number)
     SELECT scope_id, 'export', 'p', $1, $1::timestamptz + interval '1 day', 'missing_in_store', 1 FROM usage.trace_scope WHERE group_by = 'project' AND stride = 'day' AND workspace_id = (
       SELECT entity_id FROM usage.entity WHERE external_id = $2)`,
    [new Date(month.start), bench.workspaceIds[0]],
  );
  expect(await check(bench)).toMatchObject({ daysProved: clean.daysProved - 31, daysDisproved: 31 });
});

test("without a loaded day, each final day waits and is said to be not loaded", async () => {
  const bench = await setup({ days: 10, workspaces: [WORKSPACE] });
  const about = { daysProved: 0, daysDisproved: 0, failures: 0, findings: [], others: [], requests: 0 };
  expect(await check(bench)).toMatchObject({ ...about, daysWaiting: 4 * 7, daysNotFinal: 4 * 7 });
  expect(await bench.sql("SELECT failures FROM usage.control_check")).toEqual([{ failures: 0 }]);
  const young = await setup({ days: 2, workspaces: [WORKSPACE] });
  expect(await check(young)).toMatchObject({ ...about, daysWaiting: 0, daysNotFinal: 0 });
  expect(await young.sql("SELECT FROM usage.control_check")).toEqual([]);
});

test("days that are not loaded and windows without proven access are counted as not checked", async () => {
  const bench = await loaded(60);
  await bench.sql(
    `DELETE FROM usage.coverage c USING usage.trace_scope s
     WHERE s.scope_id = c.scope_id AND s.group_by = 'user' AND c.period_start <= $1 AND c.period_end > $1`,
    [new Date(bench.today - 40 * DAY_MS)],
  );
  const [lost] = await bench.sql<{ days: number }>(
    `SELECT 57 - sum(extract(epoch FROM period_end - period_start) / 86400)::integer AS days
     FROM usage.coverage JOIN usage.trace_scope USING (scope_id) WHERE group_by = 'user' AND stride = 'day' AND final`,
  );
  expect(lost?.days).toBeGreaterThan(0);
  expect(await check(bench)).toMatchObject({ daysNotFinal: lost?.days, othersNotFinal: 0, unverified: 0 });
  setReadable(bench.standin, WORKSPACE, false);
  const blind = await check(bench);
  expect(blind.unverified).toBeGreaterThan(0);
  expect(blind.daysProved).toBe(0);
});
