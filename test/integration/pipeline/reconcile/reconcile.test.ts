import { describe, expect, test } from "vitest";
import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import { setReadable, setup } from "../../../support/source.ts";

describe("clean data", () => {
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
