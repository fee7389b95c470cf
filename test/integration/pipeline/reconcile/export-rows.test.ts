import { describe, expect, test } from "vitest";
import { senderOn, setup } from "../../../support/source.ts";
import { behindProxy, NAME, PROJECTS, plus } from "./bench.ts";

describe("names", () => {
  test("that the JSON never gives are a contradiction of the platform", async () => {
    const { change, reconcile, kept } = await behindProxy();
    change((cells, row) => (row === 0 ? cells.with(NAME, "Other") : cells));
    expect(await reconcile()).toMatchObject({ open: 0, platformDisagrees: 1 });
    expect(await kept()).toMatchObject([{ kind: "name_differs", says: "Other" }]);
    change((cells, row) => (row === 0 ? cells.with(NAME, "") : cells));
    expect(await reconcile()).toMatchObject({ open: 0, platformDisagrees: 0 });
  });

  test.each(["hash", "drop"] as const)("that are addresses are not compared under %s", async (userEmail) => {
    const bench = await setup({ workspaces: [0], userEmail });
    await bench.sync();
    const { user } = senderOn(bench.standin, 0, bench.dataStart);
    if (user !== null) user.email = "new@example.com";
    expect(await bench.reconcile({ groupings: ["user"] })).toMatchObject({ differences: [], failures: [] });
    const everything = await bench.sql<{ line: string }>(
      "SELECT d::text AS line FROM usage.difference d UNION ALL SELECT n::text FROM usage.entity_name n",
    );
    expect(everything.map(({ line }) => line).join()).not.toContain("@example.com");
  });
});

test("the end of a bucket that is not its start plus a stride is a difference, after counts and before names", async () => {
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
