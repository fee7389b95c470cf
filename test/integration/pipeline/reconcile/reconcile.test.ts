import { describe, expect, test } from "vitest";
import { DAY_MS, STRIDE_MS } from "../../../../src/domain/time/stride.ts";
import { GROUPINGS } from "../../../../src/domain/usage/record.ts";
import { setReadable, setup } from "../../../support/source.ts";

/** Postgres held against the export: what is found is what is there, no more and no less. */

describe("clean data", () => {
  test.each(["day", "hour"] as const)("has no difference in any dimension, by %s", async (stride) => {
    const bench = await setup({ hourlyForMs: 5 * DAY_MS });
    await bench.sync();
    for (const groupBy of GROUPINGS) {
      const result = await bench.reconcile({ stride, groupings: [groupBy] });
      expect(result).toMatchObject({ differences: [], failures: [], unverified: 0 });
      const [{ n } = { n: -1 }] = await bench.sql<{ n: number }>(
        `SELECT count(*) AS n FROM reporting_detail.usage_record WHERE is_final AND group_by = $1 AND stride = $2`,
        [groupBy, stride],
      );
      expect(n).toBeGreaterThan(0);
      expect([groupBy, result.compared]).toEqual([groupBy, n]);
    }
  });

  test("has no difference in names and keys that look like formulas, nor in weeks and months", async () => {
    const bench = await setup({ days: 170, workspaces: [1], hourlyForMs: 0 });
    const range = { start: bench.dataStart, end: bench.today };
    await bench.fetch({ wanted: [{ stride: "month", range }], reprocess: "missing" });
    await bench.fetch({
      wanted: [
        { stride: "week", range: { start: bench.today - 63 * DAY_MS, end: bench.today - 7 * DAY_MS } },
      ],
      reprocess: "missing",
    });
    for (const stride of ["week", "month"] as const) {
      const result = await bench.reconcile({ stride });
      expect(result.compared).toBeGreaterThan(0);
      expect(result).toMatchObject({ differences: [], failures: [] });
    }
    const guarded = await bench.sql(
      "SELECT FROM usage.entity WHERE dimension = 'api_key' AND external_id ~ '^[=+@-]'",
    );
    expect(guarded.length).toBeGreaterThan(0);
  });

  test("is never compared where it may still change", async () => {
    const bench = await setup({ workspaces: [0, 1], hourlyForMs: 2 * DAY_MS });
    await bench.sync();
    await bench.sql("UPDATE usage.hourly_record SET traces = traces + 1");
    await bench.sql("UPDATE usage.dated_record SET traces = traces + 1 WHERE bucket_start >= $1::date", [
      new Date(bench.today - 3 * DAY_MS).toISOString().slice(0, 10),
    ]);
    for (const stride of ["day", "hour"] as const) {
      expect((await bench.reconcile({ stride })).differences).toEqual([]);
    }
    // One day more is final, and there it would have been found.
    await bench.sql("UPDATE usage.dated_record SET traces = traces + 1");
    expect((await bench.reconcile()).differences.length).toBeGreaterThan(0);
  });
});

test.each([
  ["of rows that the key may no longer see", true],
  ["without a listing, minutes after a sync", false],
])("a workspace out of the key's reach makes no difference: %s", async (_what, listing) => {
  const bench = await setup({ workspaces: [0, 1], standin: { listing } });
  await bench.sync();
  setReadable(bench.standin, 1, false);
  expect(await bench.reconcile({ repair: true })).toMatchObject({ differences: [], unverified: 4 });
});

describe("a platform that goes away", () => {
  test("ends the pass after three windows, not after all of them", async () => {
    const bench = await setup({ workspaces: [0, 1, 2] });
    await bench.sync();
    const { count } = bench.standin.requests;
    bench.standin.faults.script({ fault: { kind: "reset" }, times: 10_000, match: { path: "/export" } });
    await expect(bench.reconcile()).rejects.toMatchObject({ code: "platform_unreachable" });
    expect(bench.standin.requests.count - count).toBeLessThan(30);
  });

  test("ends the pass at once where it refuses the key", async () => {
    const bench = await setup({ workspaces: [0] });
    await bench.sync();
    bench.standin.faults.script({ fault: { kind: "status", status: 401 }, match: { path: "/export" } });
    await expect(bench.reconcile()).rejects.toMatchObject({ status: 401 });
    expect(await bench.sql("SELECT refused_code FROM usage.source")).toEqual([
      { refused_code: "unauthorized" },
    ]);
  });
});

test("a range is compared only where it is final", async () => {
  const bench = await setup({ workspaces: [0] });
  await bench.sync();
  const range = { start: bench.dataStart + DAY_MS, end: bench.dataStart + 2 * DAY_MS };
  await bench.reconcile({ range });
  const asked = await bench.sql<{ period_start: Date; period_end: Date }>(
    "SELECT DISTINCT period_start, period_end FROM usage.fetch WHERE purpose = 'reconcile'",
  );
  expect(asked.map(({ period_start, period_end }) => [period_start.getTime(), period_end.getTime()])).toEqual(
    [[range.start, range.start + STRIDE_MS.day]],
  );
});
