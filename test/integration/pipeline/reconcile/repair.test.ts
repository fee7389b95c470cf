import { describe, expect, test } from "vitest";
import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import { startProxy } from "../../../support/proxy.ts";
import { type Bench, beginProject, senderOn, setup } from "../../../support/source.ts";
import { dump } from "../../../support/tables.ts";
import { behindProxy, NAME, PROJECTS, plus, REPAIR, wrong } from "./bench.ts";

describe("figures that the platform gives two ways", () => {
  test("end as a contradiction, keep the JSON, and are never asked about again", async () => {
    const { bench, change, reconcile, loads, kept } = await behindProxy();
    const before = await dump(bench);
    change((cells, row) => (row === 0 ? plus(cells, 5) : cells));
    const first = await reconcile();
    expect(first).toMatchObject({ open: 0, platformDisagrees: 1, repaired: { differences: 1, mended: 0 } });
    expect(first.differences).toMatchObject([{ kind: "traces_differ", state: "platform_disagrees" }]);
    expect((await dump(bench)).records).toEqual(before.records);
    expect(await bench.sql("SELECT state FROM reporting_detail.usage_reconciliation")).toEqual([
      { state: "platform_disagrees" },
    ]);

    const requested = await loads();
    const again = await reconcile();
    expect(again).toMatchObject({ open: 0, platformDisagrees: 1 });
    expect(again.repaired).toBeUndefined();
    expect(await loads()).toBe(requested);

    change((cells, row) => (row === 0 ? plus(cells, 6) : cells));
    expect(await reconcile(PROJECTS)).toMatchObject({ open: 1, platformDisagrees: 0 });
    expect(await reconcile()).toMatchObject({ open: 0, platformDisagrees: 1 });
    expect(await loads()).toBe(requested + 1);

    change((cells) => cells);
    expect(await reconcile()).toMatchObject({ open: 0, platformDisagrees: 0 });
    expect(await kept()).toMatchObject([{ state: "closed" }]);
  });

  test("are contradictions too where only one of JSON and export names a key", async () => {
    const { change, reconcile } = await behindProxy();
    const invented = "00000000-0000-4000-8000-000000000000";
    change((cells, row) =>
      row === 0 ? [] : row === 1 ? [cells, cells.with(4, invented).with(NAME, "Invented")] : cells,
    );
    const { differences: left } = await reconcile();
    expect(left.map(({ kind, state }) => [kind, state]).sort()).toEqual([
      ["missing_in_export", "platform_disagrees"],
      ["missing_in_store", "platform_disagrees"],
    ]);
    expect(left.find(({ kind }) => kind === "missing_in_store")).toMatchObject({ dimensionId: invented });
  });

  test("stay open while neither side says the same twice", async () => {
    const { bench, change, reconcile, kept } = await behindProxy();
    let more = 1;
    change((cells, row) => (row === 0 ? plus(cells, more++) : cells));
    expect(await reconcile()).toMatchObject({ open: 1, platformDisagrees: 0 });
    expect(await reconcile()).toMatchObject({ open: 1, platformDisagrees: 0 });
    change((cells) => cells);
    // It came back by itself: nothing was fetched since it was last seen.
    expect(await reconcile()).toMatchObject({ open: 0, platformDisagrees: 0 });
    expect(await kept()).toMatchObject([{ state: "closed" }]);
    expect(await bench.sql("SELECT FROM usage.restatement")).toEqual([]);
  });

  test("stay open after a response that could not be loaded", async () => {
    const { bench, change, reconcile } = await behindProxy();
    change((cells, row) => (row === 0 ? plus(cells, 5) : cells));
    bench.standin.faults.script({
      fault: { kind: "status", status: 400 },
      times: 100,
      match: { path: "granular-usage", query: { group_by: "project" } },
      skip: 1,
    });
    const result = await reconcile();
    expect(result).toMatchObject({ open: 1, platformDisagrees: 0 });
    expect(result.repaired?.run.failures.length).toBeGreaterThan(0);
  });
});

test("what a damaged export lacks is withdrawn where the second look agrees with what is stored", async () => {
  const bench = await setup({ workspaces: [0] });
  await bench.sync();
  const before = await dump(bench);
  const lastDay = new Date(bench.today - 4 * DAY_MS).toISOString().slice(0, 10);
  let exports = 0;
  // Cut at the end of a row, and sent on as if it were whole.
  const proxy = await startProxy(bench.standin.url, ({ url, text }) =>
    url.pathname.endsWith("/export") && exports++ === 0
      ? text.slice(0, text.indexOf(`\r\n${lastDay}T`) + 2)
      : undefined,
  );
  const states = async () =>
    (
      await bench.sql<{ state: string }>("SELECT state FROM reporting_detail.usage_reconciliation ORDER BY 1")
    ).map(({ state }) => state);
  const result = await bench.reconcile(REPAIR, { baseUrl: proxy.url });
  const lacking = await states();
  expect(lacking.length).toBeGreaterThan(2);
  expect(lacking).toEqual(lacking.map(() => "withdrawn"));
  const differences = lacking.length;
  expect(result).toMatchObject({ open: 0, repaired: { differences, mended: 0, withdrawn: differences } });
  expect((await dump(bench)).records).toEqual(before.records);
  bench.standin.ledger.change(senderOn(bench.standin, 0, bench.today - 4 * DAY_MS), 4);
  const again = await bench.reconcile(REPAIR, { baseUrl: proxy.url });
  expect(again).toMatchObject({ open: 0, repaired: { differences: 1, mended: 1, withdrawn: 0 } });
  expect(await states()).toEqual(["repaired", ...lacking.slice(1)]);
});

describe("a load that comes between", () => {
  const withLoads = (bench: Bench, times: number) =>
    bench.reconcile(PROJECTS, {
      opened: (source) => {
        const { exportCsv } = source.billing;
        let left = times;
        Object.assign(source.billing, {
          exportCsv: async (...requested: Parameters<typeof exportCsv>) => {
            const exported = await exportCsv(...requested);
            if (left-- > 0) {
              const range = { start: requested[0].start, end: requested[0].end };
              await bench.fetch({
                wanted: [{ stride: "day", range }],
                reprocess: "all",
                groupings: ["project"],
              });
            }
            return exported;
          },
        });
      },
    });

  test("makes it ask for the export again; twice in a row leaves the window for the next pass, and the result says so", async () => {
    const bench = await setup({ workspaces: [0] });
    await bench.sync();
    const result = await withLoads(bench, 2);
    expect(result).toMatchObject({ requests: 2, moved: 1, open: 0, compared: 0 });
    expect(await bench.sql("SELECT FROM usage.reconciled")).toEqual([]);
    expect(await withLoads(bench, 1)).toMatchObject({ requests: 2, moved: 0, open: 0 });
  });
});

test("only mismatching days are fetched again, in the fewest windows", async () => {
  const bench = await setup({ workspaces: [0], days: 50 });
  await bench.sync();
  const at = (day: number) => bench.dataStart + day * DAY_MS;
  for (const day of [2, 9, 30]) bench.standin.ledger.change(senderOn(bench.standin, 0, at(day)), 4);
  const requested = bench.standin.requests.count;
  const result = await bench.reconcile(REPAIR);
  expect(result).toMatchObject({ open: 0, repaired: { differences: 3, mended: 3 } });
  expect(result.repaired?.run.counts.map(({ requests }) => requests)).toEqual([1]);
  expect(result.requests).toBe(3);
  expect(bench.standin.requests.count - requested).toBeLessThanOrEqual(9);
  const windows = await bench.sql<{ period_start: Date; period_end: Date }>(
    "SELECT period_start, period_end FROM usage.fetch ORDER BY fetch_number DESC LIMIT 2",
  );
  for (const { period_start, period_end } of windows) {
    expect([period_start.getTime(), period_end.getTime()]).toEqual([at(2), at(31)]);
  }
});

test("a mismatching week is fetched again in a window of its tier", async () => {
  const bench = await setup({ workspaces: [0], days: 80, hourlyForMs: 0 });
  const WEEK = 7 * DAY_MS;
  const end = Math.floor((bench.today - 4 * DAY_MS) / WEEK) * WEEK;
  const range = { start: end - 8 * WEEK, end };
  await bench.fetch({ wanted: [{ stride: "week", range }], reprocess: "missing", groupings: ["project"] });
  bench.standin.ledger.change(senderOn(bench.standin, 0, end - 2 * DAY_MS), 4);
  const result = await bench.reconcile({ ...REPAIR, stride: "week" });
  expect(result).toMatchObject({ open: 0, failures: [], repaired: { differences: 1, mended: 1 } });
});

test("an export without a proven end repairs what it holds, and nothing counts as reconciled", async () => {
  const bench = await setup({ workspaces: [0], standin: { framing: "close", compress: false } });
  await bench.sync();
  bench.standin.ledger.change(senderOn(bench.standin, 0, bench.dataStart), 4);
  const fault = { kind: "whole", framing: "close" } as const;
  bench.standin.faults.script({ fault, times: 2, match: { path: "/export" } });
  expect(await bench.reconcile(REPAIR)).toMatchObject({ open: 0, repaired: { differences: 1, mended: 1 } });
  expect(await bench.sql("SELECT FROM usage.reconciled")).toEqual([]);
});

test("a repair that would delete a whole window needs a second response, as in any sync", async () => {
  const bench = await setup({ workspaces: [0] });
  await bench.sync();
  for (const project of bench.standin.organisation.projects) project.dropped = true;
  // Its usage of now stays, or it could not be told from a workspace that the key has lost.
  beginProject(bench.standin, { workspace: 0, at: bench.today - DAY_MS, traces: 1 });
  const result = await bench.reconcile({ repair: true });
  expect(result).toMatchObject({ open: 0, failures: [], unverified: 0 });
  expect(result.repaired?.mended).toBe(result.repaired?.differences);
  const final = { start: bench.dataStart, end: bench.today - 3 * DAY_MS };
  expect(await wrong(bench, "day", final)).toEqual([]);
});
