import { describe, expect, test } from "vitest";
import { senderOn, setup } from "../../../support/source.ts";
import { dump } from "../../../support/tables.ts";
import { behindProxy, NAME, PROJECTS, plus, TRACES } from "./bench.ts";

/** What the rows of an export say of names, ends of buckets and counts, beside the JSON. */

describe("names", () => {
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
