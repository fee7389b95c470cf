import { expect, test } from "vitest";
import { DAY_MS, STRIDE_MS } from "../../../../src/core/domain/time/stride.ts";
import type { UsageRecord } from "../../../../src/core/domain/usage/record.ts";
import { fetchTotals } from "../../../../src/core/pipeline/proof/control.ts";
import { setup } from "../../../support/source.ts";

test("a total is kept by bucket where buckets tile the window, and as one sum where they do not", async () => {
  const bench = await setup({ workspaces: [0], days: 1 });
  const [workspaceId = ""] = bench.workspaceIds;
  const source = await bench.open();
  const { week } = STRIDE_MS;
  const start = 2_800 * week;
  const totals = async (
    length: number,
    records: readonly (readonly [at: number, id: string, n: number])[],
  ) => {
    Object.assign(source.billing, {
      usage: async (_: unknown, { onRecords }: { onRecords: (some: UsageRecord[]) => void }) => {
        const about = { workspaceId: null, dimensionName: null };
        onRecords(
          records.map(([at, dimensionId, traces]) => ({
            ...about,
            bucketStart: start + at,
            dimensionId,
            traces,
          })),
        );
        return { stride: "week" };
      },
    });
    const window = { start, end: start + length, stride: "week" } as const;
    const members = [{ workspaceId, scopeId: 7 }];
    const found = await fetchTotals(source, { meter: "traces", groupBy: "project", window, members });
    return {
      parts: found.parts.map((part) => [(part.start - start) / DAY_MS, (part.end - start) / DAY_MS]),
      totals: found.totals.map((one) => {
        expect(one).toMatchObject({ scopeId: 7, measure: "traces" });
        return `${one.part} ${one.dimensionId} ${one.traces}`;
      }),
    };
  };
  const weeks = [
    [0, 7],
    [7, 14],
    [14, 21],
  ];
  const tiling = [
    [0, "a", 1],
    [week, "a", 2],
    [2 * week, "b", 4],
  ] as const;
  expect(await totals(3 * week, tiling)).toEqual({ parts: weeks, totals: ["0 a 1", "1 a 2", "2 b 4"] });
  expect(await totals(3 * week, [])).toEqual({ parts: weeks, totals: [] });
  const whole = [[0, 21]];
  for (const at of [week + DAY_MS, -week, 3 * week]) {
    expect(await totals(3 * week, [...tiling.slice(0, 2), [at, "b", 4]]), `${at}`).toEqual({
      parts: whole,
      totals: expect.toSatisfy((lines: string[]) => lines.toSorted().join() === "0 a 1,0 a 2,0 b 4"),
    });
  }
  // A window that buckets cannot tile.
  expect(await totals(week + DAY_MS, [[0, "a", 1]])).toEqual({ parts: [[0, 8]], totals: ["0 a 1"] });
});
