import { describe, expect, test } from "vitest";
import { DAY_MS } from "../../../../src/domain/time/stride.ts";
import type { ReconcileRequest } from "../../../../src/pipeline/reconcile/reconcile.ts";
import { startProxy } from "../../../support/proxy.ts";
import { type Bench, senderOn, setup } from "../../../support/source.ts";
import { differences, dump, inLedger, inStore } from "../../../support/tables.ts";

/** What differs is asked about again: what was stale is replaced, what the platform says two ways is kept as just that. */

const PROJECTS: Partial<ReconcileRequest> = { groupings: ["project"] };
const REPAIR: Partial<ReconcileRequest> = { ...PROJECTS, repair: true };

/** A bench with one workspace loaded, behind a proxy that may change the lines of its exports by project. */
async function behindProxy(options: Parameters<typeof setup>[0] = {}) {
  const bench = await setup({ workspaces: [0], ...options });
  await bench.sync();
  let change: (cells: string[], row: number) => string[] | string[][] = (cells) => cells;
  const proxy = await startProxy(bench.standin.url, ({ url, text }) => {
    if (!url.pathname.endsWith("/export")) return undefined;
    const [head = "", ...rows] = text.trimEnd().split("\r\n");
    const changed = rows.flatMap((line, row) => {
      const cells = change(line.split(","), row);
      return (Array.isArray(cells[0]) ? (cells as string[][]) : [cells as string[]]).map((one) => one.join());
    });
    return `${[head, ...changed].join("\r\n")}\r\n`;
  });
  return {
    bench,
    proxy,
    change: (to: typeof change) => {
      change = to;
    },
    reconcile: (request: Partial<ReconcileRequest> = REPAIR, how: Parameters<Bench["reconcile"]>[1] = {}) =>
      bench.reconcile(request, { baseUrl: proxy.url, ...how }),
    /** Requests for JSON that were sent so far. */
    loads: async () =>
      Number(
        (await bench.sql<{ n: number }>("SELECT count(*) AS n FROM usage.fetch WHERE purpose = 'load'"))[0]
          ?.n,
      ),
    kept: () =>
      bench.sql<{ kind: string; state: string; stored: number; exported: number; says: string | null }>(
        `SELECT kind, state, stored_traces AS stored, export_traces AS exported, export_says AS says
         FROM usage.reconciliation_difference ORDER BY bucket_start, external_id`,
      ),
  };
}

/** The last column: a name with a comma in it makes more cells than columns. */
const TRACES = -1;
const NAME = 5;
const plus = (cells: string[], more: number) => cells.with(TRACES, String(Number(cells.at(TRACES)) + more));

describe("figures that the platform gives two ways", () => {
  test("end as a contradiction, keep the JSON, and are never asked about again", async () => {
    const { bench, change, reconcile, loads, kept } = await behindProxy();
    const before = await dump(bench);
    change((cells, row) => (row === 0 ? plus(cells, 5) : cells));
    const first = await reconcile();
    expect(first).toMatchObject({ open: 0, platformDisagrees: 1, repaired: { differences: 1, mended: 0 } });
    expect(first.differences).toMatchObject([{ kind: "traces_differ", state: "platform_disagrees" }]);
    expect((await dump(bench)).records).toEqual(before.records);
    expect(await bench.sql("SELECT state FROM reporting.usage_reconciliation")).toEqual([
      { state: "platform_disagrees" },
    ]);

    const asked = await loads();
    const again = await reconcile();
    expect(again).toMatchObject({ open: 0, platformDisagrees: 1 });
    expect(again.repaired).toBeUndefined();
    expect(await loads()).toBe(asked);

    // A number that changed opens it anew; the JSON is asked once more.
    change((cells, row) => (row === 0 ? plus(cells, 6) : cells));
    expect(await reconcile(PROJECTS)).toMatchObject({ open: 1, platformDisagrees: 0 });
    expect(await reconcile()).toMatchObject({ open: 0, platformDisagrees: 1 });
    expect(await loads()).toBe(asked + 1);

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

  test("stay open after an answer that could not be loaded", async () => {
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
    (await bench.sql<{ state: string }>("SELECT state FROM reporting.usage_reconciliation ORDER BY 1")).map(
      ({ state }) => state,
    );
  const result = await bench.reconcile(REPAIR, { baseUrl: proxy.url });
  const lacking = await states();
  expect(lacking.length).toBeGreaterThan(2);
  expect(lacking).toEqual(lacking.map(() => "withdrawn"));
  const differences = lacking.length;
  expect(result).toMatchObject({ open: 0, repaired: { differences, mended: 0, withdrawn: differences } });
  expect((await dump(bench)).records).toEqual(before.records);
  // Now the platform did restate one of them: that is repaired.
  bench.standin.ledger.change(senderOn(bench.standin, 0, bench.today - 4 * DAY_MS), 4);
  const again = await bench.reconcile(REPAIR, { baseUrl: proxy.url });
  expect(again).toMatchObject({ open: 0, repaired: { differences: 1, mended: 1, withdrawn: 0 } });
  expect(await states()).toEqual(["repaired", ...lacking.slice(1)]);
});

describe("names", () => {
  test("that only the export gives are found once an id, at the latest bucket, and a repair learns them", async () => {
    const bench = await setup({ workspaces: [0] });
    await bench.sync();
    const { project } = senderOn(bench.standin, 0, bench.dataStart);
    project.name = "Renamed, and with a comma";
    const found = await bench.reconcile(PROJECTS);
    expect(found.differences).toMatchObject([
      { kind: "name_differs", state: "open", dimensionId: project.id, exportSays: project.name },
    ]);
    const [one] = found.differences;
    expect(one?.storedTraces).toBe(one?.exportTraces);
    expect(one?.bucketStart).toBe(bench.today - 4 * DAY_MS);
    expect(await bench.reconcile(REPAIR)).toMatchObject({ open: 0, repaired: { differences: 1, mended: 1 } });
    expect(
      await bench.sql("SELECT name FROM usage.entity_name WHERE name = $1", [project.name]),
    ).toHaveLength(1);
    expect(await bench.sql("SELECT FROM usage.restatement")).toEqual([]);
  });

  test("that the JSON never gives are a contradiction of the platform", async () => {
    const { change, reconcile, kept } = await behindProxy();
    change((cells, row) => (row === 0 ? cells.with(NAME, "Other") : cells));
    expect(await reconcile()).toMatchObject({ open: 0, platformDisagrees: 1 });
    expect(await kept()).toMatchObject([{ kind: "name_differs", says: "Other" }]);
    // An empty name is none.
    change((cells, row) => (row === 0 ? cells.with(NAME, "") : cells));
    expect(await reconcile()).toMatchObject({ open: 0, platformDisagrees: 0 });
  });

  test("are reported after counts that differ", async () => {
    const { change, reconcile, kept } = await behindProxy();
    change((cells, row) => (row === 0 ? plus(cells, 1).with(NAME, "Other") : cells));
    await reconcile(PROJECTS);
    expect(await kept()).toMatchObject([{ kind: "traces_differ", says: null }]);
  });

  test.each(["hash", "drop"] as const)("that are addresses are not compared under %s", async (userEmail) => {
    const bench = await setup({ workspaces: [0], userEmail });
    await bench.sync();
    const { user } = senderOn(bench.standin, 0, bench.dataStart);
    if (user !== null) user.email = "new@example.com";
    expect(await bench.reconcile({ groupings: ["user"] })).toMatchObject({ differences: [], failures: [] });
    const everything = await bench.sql<{ line: string }>(
      "SELECT d::text AS line FROM usage.reconciliation_difference d UNION ALL SELECT n::text FROM usage.entity_name n",
    );
    expect(everything.map(({ line }) => line).join()).not.toContain("@example.com");
  });
});

describe("the end of a bucket", () => {
  test("that is not its start plus a stride is a difference, after counts and before names", async () => {
    const { change, reconcile, kept } = await behindProxy();
    change((cells, row) =>
      row === 0
        ? cells.with(1, "2030-01-01T00:00:00Z").with(NAME, "Other")
        : row === 1
          ? plus(cells, 1).with(1, "2030-01-01T00:00:00Z")
          : cells,
    );
    await reconcile(PROJECTS);
    const both = await kept();
    expect(both.map(({ kind }) => kind).sort()).toEqual(["bucket_end_differs", "traces_differ"]);
    expect(both.find(({ kind }) => kind === "bucket_end_differs")?.says).toBe("2030-01-01T00:00:00Z");
    expect(await reconcile()).toMatchObject({ open: 0, platformDisagrees: 2 });
  });

  test("that fits another stride in all rows is refused by line and column", async () => {
    const { bench, change, reconcile } = await behindProxy();
    const before = await dump(bench);
    change((cells) => cells.with(1, "2030-01-01T00:00:00Z"));
    const { failures } = await reconcile();
    expect(failures.map(({ code }) => code)).toEqual(["stride_differs"]);
    expect(failures[0]?.message).toContain('line 2, column "Time Bucket End"');
    expect(await dump(bench)).toEqual(before);
  });
});

test.each([
  [
    "traces",
    (cells: string[]) => cells.with(TRACES, "-1"),
    "answer_invalid",
    'line 3, column "Traces": "-1"',
  ],
  [
    "fractions",
    (cells: string[]) => cells.with(TRACES, "1.5"),
    "answer_invalid",
    'line 3, column "Traces": "1.5"',
  ],
  [
    "numbers over 2^53",
    (cells: string[]) => cells.with(TRACES, "9007199254740992"),
    "answer_invalid",
    'column "Traces"',
  ],
  [
    "timestamps",
    (cells: string[]) => cells.with(0, "yesterday"),
    "answer_invalid",
    'line 3, column "Time Bucket Start": "yesterday"',
  ],
  [
    "buckets outside the window",
    (cells: string[]) => cells.with(0, "2025-01-01T00:00:00Z").with(1, "2025-01-02T00:00:00Z"),
    "bucket_misplaced",
    'line 3, column "Time Bucket Start": bucket 2025-01-01T00:00:00.000Z',
  ],
  [
    "buckets off the grid",
    (cells: string[]) => cells.with(0, (cells[0] ?? "").replace("T00:00", "T01:00")),
    "bucket_misplaced",
    'line 3, column "Time Bucket Start"',
  ],
  ["cells", (cells: string[]) => cells.slice(0, 5), "answer_invalid", "line 3 has 5 columns"],
  ["quotes", (cells: string[]) => cells.with(NAME, 'a"b'), "answer_invalid", "line 3 is not CSV"],
  [
    "workspaces",
    (cells: string[]) => cells.with(2, "00000000-0000-4000-8000-000000000000"),
    "workspace_unasked",
    'line 3, column "Workspace ID"',
  ],
] as const)(
  "an export with wrong %s is refused whole, by line and column",
  async (_, wrong, code, message) => {
    const { bench, change, reconcile } = await behindProxy();
    await bench.sql("UPDATE usage.dated_record SET traces = traces + 1");
    const before = await dump(bench);
    change((cells, row) => (row === 1 ? wrong(cells) : cells));
    const result = await reconcile();
    expect(result).toMatchObject({ compared: 0, open: 0 });
    expect(result.failures.map((failure) => failure.code)).toEqual([code]);
    expect(result.failures[0]?.message).toContain(message);
    expect(await dump(bench)).toEqual(before);
    expect(await bench.sql("SELECT FROM usage.reconciled")).toEqual([]);
  },
);

test("rows of one key are added up in any order", async () => {
  const { change, reconcile } = await behindProxy();
  const halves = (cells: string[]) => {
    const count = Number(cells.at(TRACES));
    return [cells.with(TRACES, String(count - 1)), cells.with(TRACES, "1")];
  };
  change(halves);
  expect(await reconcile(PROJECTS)).toMatchObject({ open: 0, failures: [] });
  change((cells, row) => (row === 0 ? [cells, cells] : halves(cells)));
  expect((await reconcile(PROJECTS)).differences.map(({ kind }) => kind)).toEqual(["traces_differ"]);
});

describe("a load that comes between", () => {
  /** The exports of this bench, with something done behind each answer. */
  const withLoads = (bench: Bench, times: number) =>
    bench.reconcile(PROJECTS, {
      opened: (source) => {
        const { exportCsv } = source.billing;
        let left = times;
        Object.assign(source.billing, {
          exportCsv: async (...asked: Parameters<typeof exportCsv>) => {
            const exported = await exportCsv(...asked);
            if (left-- > 0) {
              const range = { start: asked[0].start, end: asked[0].end };
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

  test("makes it ask for the export again", async () => {
    const bench = await setup({ workspaces: [0] });
    await bench.sync();
    expect(await withLoads(bench, 1)).toMatchObject({ requests: 2, moved: 0, open: 0 });
  });

  test("twice in a row leaves the window for the next pass, and the result says so", async () => {
    const bench = await setup({ workspaces: [0] });
    await bench.sync();
    const result = await withLoads(bench, 2);
    expect(result).toMatchObject({ requests: 2, moved: 1, open: 0, compared: 0 });
    expect(await bench.sql("SELECT FROM usage.reconciled")).toEqual([]);
  });
});

test("only mismatching days are fetched again, in the fewest windows", async () => {
  const bench = await setup({ workspaces: [0], days: 50 });
  await bench.sync();
  const at = (day: number) => bench.dataStart + day * DAY_MS;
  for (const day of [2, 9, 30]) bench.standin.ledger.change(senderOn(bench.standin, 0, at(day)), 4);
  const asked = bench.standin.requests.count;
  const result = await bench.reconcile(REPAIR);
  expect(result).toMatchObject({ open: 0, repaired: { differences: 3, mended: 3 } });
  // Three days within 31: one window. Two windows hold all days at first; then JSON and export once
  // each; the contact, and proof of access at the end.
  expect(result.repaired?.run.counts.map(({ requests }) => requests)).toEqual([1]);
  expect(result.requests).toBe(3);
  expect(bench.standin.requests.count - asked).toBeLessThanOrEqual(7);
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

test("a repair that would delete a whole window needs a second answer, as in any sync", async () => {
  const bench = await setup({ workspaces: [0] });
  await bench.sync();
  for (const project of bench.standin.organisation.projects) project.dropped = true;
  const result = await bench.reconcile({ repair: true });
  expect(result).toMatchObject({ open: 0, failures: [], unverified: 0 });
  expect(result.repaired?.mended).toBe(result.repaired?.differences);
  const stored = await inStore(bench, ["day"]);
  const range = { start: bench.dataStart, end: bench.today - 3 * DAY_MS };
  const settled = new Map([...stored].filter(([key]) => Date.parse(key.split(" ")[2] ?? "") < range.end));
  expect(
    differences(settled, inLedger(bench.standin, { stride: "day", range, workspaceIds: bench.workspaceIds })),
  ).toEqual([]);
});
