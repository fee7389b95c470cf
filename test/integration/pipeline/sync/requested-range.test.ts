import { expect, test } from "vitest";
import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import { type Requested, statusOfRequested } from "../../../../src/core/pipeline/sync/requested-range.ts";
import { setup } from "../../../support/source.ts";

test("each meter, dimension and workspace that was asked for has its lines, whoever loaded it", async () => {
  const bench = await setup({ workspaces: [0, 1], days: 6 });
  const source = await bench.open();
  const [first = "", second = ""] = bench.workspaceIds;
  const range = { start: bench.dataStart, end: bench.today };
  const lines = async (requested: Partial<Requested> = {}, of: Partial<typeof source> = {}) => {
    const wanted = [{ stride: "day", range }] as const;
    const found = await statusOfRequested(
      bench.store.db,
      { ...source, ...of },
      { wanted, groupings: ["user"], workspaceIds: [first, second], ...requested },
    );
    return found.map(
      ({ meter, groupBy, stride, status, buckets }) => `${meter} ${groupBy} ${stride} ${status} ${buckets}`,
    );
  };
  expect(await lines()).toEqual(["traces user day missing 12"]);
  await bench.fetch({
    wanted: [{ stride: "day", range }],
    groupings: ["user"],
    workspaceIds: [first],
    reprocess: "all",
  });
  expect(await lines({ workspaceIds: [first] })).toEqual([
    "traces user day final 3",
    "traces user day provisional 3",
  ]);
  expect((await lines()).sort()).toEqual([
    "traces user day final 3",
    "traces user day missing 6",
    "traces user day provisional 3",
  ]);
  const all = await statusOfRequested(bench.store.db, source, {
    wanted: [{ stride: "day", range }],
    workspaceIds: [second],
  });
  expect(all.map(({ groupBy }) => groupBy).sort()).toEqual(["api_key", "project", "user", "workspace"]);
  expect(await lines({ wanted: [{ stride: "hour", range }], workspaceIds: [first] })).toEqual([
    "traces user hour missing 144",
  ]);
  const both = [
    { stride: "hour", range: { start: range.start, end: range.start + DAY_MS } },
    { stride: "day", range: { start: range.start + DAY_MS, end: range.end } },
  ] as const;
  expect((await lines({ wanted: both, workspaceIds: [first] })).sort()).toEqual([
    "traces user day final 2",
    "traces user day provisional 3",
    "traces user hour missing 24",
  ]);
  const wanted = [
    { stride: "day", range, meter: "longlived" },
    { stride: "day", range },
  ] as const;
  expect(await lines({ wanted, workspaceIds: [second] })).toEqual([
    "traces user day missing 6",
    "longlived user day not_available 6",
  ]);
  const longlived = { meters: new Map([...source.meters, ["longlived", range.start + DAY_MS] as const]) };
  expect(await lines({ wanted: wanted.slice(0, 1), workspaceIds: [second] }, longlived)).toEqual([
    "longlived user day missing 5",
  ]);
  expect(await lines({ workspaceIds: [second] }, { capabilities: new Set(["no_day"]) })).toEqual([
    "traces user day not_available 6",
  ]);
});
