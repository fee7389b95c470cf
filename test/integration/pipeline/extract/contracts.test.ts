import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS, STRIDE_MS, type Stride } from "../../../../src/core/domain/time/stride.ts";
import { now } from "../../../support/clock.ts";
import { type Bench, setup } from "../../../support/source.ts";
import { differences, dump, inLedger, inStore, together, wrongFigures } from "../../../support/tables.ts";

const days = ({ standin, dataStart, today, workspaceIds }: Bench, end = today + DAY_MS) =>
  inLedger(standin, { stride: "day", range: { start: dataStart, end }, workspaceIds });
const hours = ({ standin, today, workspaceIds }: Bench, from: number, to = today + DAY_MS) =>
  inLedger(standin, { stride: "hour", range: { start: from, end: to }, workspaceIds });

async function expectDailyViews(bench: Bench, until = bench.today + DAY_MS): Promise<void> {
  const rows = await bench.sql<{ day: string; traces: number }>(
    ["workspace", "project", "user", "api_key"]
      .map(
        (by) =>
          `SELECT concat_ws(' ', '${by}', usage_date, workspace_id) AS day, sum(traces)::bigint AS traces
           FROM reporting.fct_usage_${by}_daily WHERE traces > 0 GROUP BY 1`,
      )
      .join(" UNION ALL "),
  );
  const book = new Map<string, number>();
  for (const [key, traces] of days(bench, until)) {
    const [groupBy, , at, workspace] = key.split(" ");
    const day = `${groupBy} ${at?.slice(0, 10)} ${workspace}`;
    book.set(day, (book.get(day) ?? 0) + traces);
  }
  expect(differences(new Map(rows.map(({ day, traces }) => [day, traces])), book)).toEqual([]);
}

const capabilitiesOf = async (bench: Bench) =>
  (await bench.sql<{ fact: string }>("SELECT fact FROM usage.source_fact ORDER BY 1")).map((row) => row.fact);

test("a day-granular server yields right days, and a few requests show that it has no hours", async () => {
  const bench = await setup({
    workspaces: [0, 1],
    hourlyForMs: 4 * DAY_MS,
    standin: { contract: "day-granular" },
  });
  const { run } = await bench.sync();
  expect(run.failures).toEqual([]);
  expect(await capabilitiesOf(bench)).toEqual(["no_hour"]);
  const [{ wasted } = { wasted: -1 }] = await bench.sql<{ wasted: number }>(
    "SELECT count(*) AS wasted FROM usage.fetch WHERE stride = 'hour'",
  );
  expect(wasted).toBeLessThanOrEqual(4);
  expect(differences(await inStore(bench), days(bench))).toEqual([]);
  await expectDailyViews(bench);
  const statuses = await bench.sql<{ stride: string; status: string }>(
    "SELECT DISTINCT stride, status FROM reporting_detail.usage_coverage_daily WHERE stride = 'hour'",
  );
  expect(statuses).toEqual([{ stride: "hour", status: "not_available" }]);
  expect((await dump(bench)).failures).toEqual([]);

  const again = await bench.sync();
  expect(again.run.counts.map(({ stride }) => stride)).toEqual(["day", "day", "day", "day"]);
  expect(again.requests).toBe(again.planned + 2);
});

test("one stride retry a day asks for hours again, and they come back with the server", async () => {
  const bench = await setup({ workspaces: [0, 1], standin: { contract: "day-granular" } });
  await bench.sync();
  const requested = async () => {
    const rows = await bench.sql<{ n: number }>(
      "SELECT count(*) AS n FROM usage.fetch WHERE stride = 'hour'",
    );
    return rows[0]?.n ?? -1;
  };
  const first = await requested();
  await bench.passTime();
  const probed = await bench.sync();
  expect(probed.run.failures).toEqual([]);
  expect(await requested()).toBe(first + 1);
  await bench.sync();
  expect(await requested()).toBe(first + 1);

  bench.standin.settings.contract = "tiered";
  await bench.sync();
  expect(await requested()).toBe(first + 1);
  await bench.passTime();
  await bench.sync();
  expect(await capabilitiesOf(bench)).toEqual([]);
  await bench.sync();
  expect(await wrongFigures(bench, { hourDays: 1 })).toEqual([]);
});

test("a server that refuses the future yields hours up to now and whole days, without today", async () => {
  const bench = await setup({ workspaces: [0, 1], standin: { refuseFuture: true } });
  const { run } = await bench.sync();
  expect(run.failures).toEqual([]);
  expect(await capabilitiesOf(bench)).toEqual(["no_future_end"]);
  const lastHour = Math.floor(bench.now / HOUR_MS) * HOUR_MS;
  expect(
    differences(
      await inStore(bench),
      together(days(bench, bench.today), hours(bench, bench.today - DAY_MS, lastHour)),
    ),
  ).toEqual([]);
  const [today] = await bench.sql(
    `SELECT DISTINCT traces, coverage_status AS status FROM reporting.fct_usage_workspace_daily
     WHERE usage_date = (SELECT max(usage_date) FROM reporting.fct_usage_workspace_daily)`,
  );
  expect(today).toEqual({ traces: null, status: "missing" });
  await expectDailyViews(bench, bench.today);
  expect((await dump(bench)).failures).toEqual([]);

  const again = await bench.sync();
  expect(again.requests).toBe(again.planned + 2);
  const refused = await bench.sql("SELECT FROM usage.fetch WHERE outcome = 'failed' AND fetch_number > 100");
  expect(refused.length).toBe(0);
});

test("a day that is not loaded itself is the sum of its hours, counted once", async () => {
  const bench = await setup({ workspaces: [0, 1], hourlyForMs: 3 * DAY_MS });
  bench.standin.faults.script({
    fault: { kind: "stride" },
    times: 1,
    match: { path: "granular-usage", query: { group_by: "project" } },
  });
  const { run } = await bench.fetch({
    wanted: [{ stride: "day", range: { start: bench.dataStart, end: bench.today } }],
    reprocess: "missing",
  });
  expect(run.failures).toEqual([]);
  const { failures } = await dump(bench);
  expect(failures).toHaveLength(1);
  expect(failures[0]).toMatch(/^project day .* failed stride_differs/);
  const stored = await inStore(bench);
  const byHour = [...stored].filter(([key]) => key.split(" ")[1] === "hour");
  expect(byHour.length).toBeGreaterThan(0);
  expect(new Set(byHour.map(([key]) => key.split(" ")[0]))).toEqual(new Set(["project"]));
  await expectDailyViews(bench, bench.today);

  await bench.sync();
  await expectDailyViews(bench);
  await bench.passTime();
  await bench.sync();
  expect((await dump(bench)).failures).toEqual([]);
  await expectDailyViews(bench);
  expect(await wrongFigures(bench)).toEqual([]);
});

test.each(["window", "epoch"] as const)("every stride on a server that aligns to the %s", async (align) => {
  const start = Date.UTC(2022, 5, 15);
  const days = Math.floor(now() / DAY_MS) - start / DAY_MS;
  const bench = await setup({ days, workspaces: [0], standin: { align } });
  for (const stride of ["week", "month", "year"] as Stride[]) {
    const length = { hour: 0, day: 0, week: 60, month: 200, year: days }[stride];
    const range = { start: bench.today - length * DAY_MS, end: bench.today - 3 * DAY_MS };
    const { run } = await bench.fetch({ wanted: [{ stride, range }], reprocess: "missing" });
    expect(run.failures).toEqual([]);
    expect(run.counts.some((counts) => counts.stride === stride && counts.rows.records > 0)).toBe(true);
  }
  const stored = await inStore(bench, ["day", "week", "month", "year"]);
  for (const stride of ["day", "week", "month", "year"] as const) {
    const size = STRIDE_MS[stride];
    const book = inLedger(bench.standin, {
      stride,
      range: {
        start: Math.floor(bench.dataStart / size) * size,
        end: Math.ceil((bench.today + DAY_MS) / size) * size,
      },
      workspaceIds: bench.workspaceIds,
    });
    const wrong = [...stored].filter(
      ([key, traces]) => key.split(" ")[1] === stride && book.get(key) !== traces,
    );
    expect(wrong.slice(0, 5)).toEqual([]);
  }
  const covered = await bench.sql<{ lacking: number; doubled: number }>(
    `WITH day AS (
       SELECT generate_series($1::timestamptz, $2::timestamptz - interval '1 day', interval '1 day') AS day
     )
     SELECT count(*) FILTER (WHERE n = 0) AS lacking, count(*) FILTER (WHERE n > 1) AS doubled
     FROM (
       SELECT day, (SELECT count(*) FROM usage.coverage JOIN usage.trace_scope USING (scope_id)
                    WHERE stride IN ('year', 'month') AND group_by = 'user' AND period_start <= day AND period_end > day) AS n
       FROM day
     ) counted`,
    [new Date(bench.today - 200 * DAY_MS).toISOString(), new Date(bench.today - 60 * DAY_MS).toISOString()],
  );
  expect(covered[0]?.lacking).toBe(0);
});
