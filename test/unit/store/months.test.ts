import type { PoolClient } from "pg";
import { expect, test } from "vitest";
import { MonthCounter } from "../../../src/store/months.ts";

const hour = (iso: string) => Date.parse(iso) / 3_600_000;

/** What a counter keeps, as `series month traces records`. */
async function kept(rows: readonly [seriesId: number, day: string, traces: number][]): Promise<string[]> {
  const months = new MonthCounter();
  // One object for all rows, as an answer hands them out.
  const row = { seriesId: 0, bucketHour: 0, traces: 0 };
  function* given() {
    for (const [seriesId, day, traces] of rows) {
      yield Object.assign(row, { seriesId, bucketHour: hour(day), traces });
    }
  }
  const passed = [...months.passing(given())].length;
  expect(passed).toBe(rows.length);
  const sent: unknown[][] = [];
  const client = { query: async (_: string, values: unknown[][]) => void sent.push(...values) };
  await months.keep(client as unknown as PoolClient);
  const [series = [], starts = [], traces = [], records = []] = sent;
  return series.map((one, i) => [one, starts[i], traces[i], records[i]].join(" "));
}

test("rows are counted by series and calendar month, over year ends and leap days", async () => {
  expect(
    await kept([
      [1, "2023-12-31", 1],
      [1, "2024-01-01", 2],
      [1, "2024-02-29", 4],
      [1, "2024-03-01", 8],
      [2, "2023-12-31", 16],
      [3, "2024-03-01", 0],
      [3, "2024-03-31", 0],
    ]),
  ).toEqual([
    ...["1 2023-12-01 1 1", "1 2024-01-01 2 1", "1 2024-02-01 4 1", "1 2024-03-01 8 1"],
    ...["2 2023-12-01 16 1", "3 2024-03-01 0 2"],
  ]);
});

test("a sum that a number does not hold is exact", async () => {
  const most = Number.MAX_SAFE_INTEGER;
  expect(
    await kept([
      [1, "2024-03-01", most],
      [1, "2024-03-02", most],
      [1, "2024-03-03", 3],
    ]),
  ).toEqual([`1 2024-03-01 ${2n * BigInt(most) + 3n} 3`]);
});

test("nothing counted is nothing sent", async () => {
  expect(await kept([])).toEqual([]);
});
