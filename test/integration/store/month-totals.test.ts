import { expect, test } from "vitest";
import { MonthCounter } from "../../../src/store/load/month-counter.ts";
import { setupStore } from "./setup.ts";

type Row = readonly [seriesId: number, day: string, traces: number];

const hour = (iso: string) => Date.parse(iso) / 3_600_000;

/** Counts loads on their way to COPY, and returns the table as lines of `series month traces records`. */
async function setupMonths() {
  const { store, reader } = await setupStore();
  return async (...loads: readonly (readonly Row[])[]): Promise<string[]> => {
    for (const rows of loads) {
      const months = new MonthCounter();
      // One object for all rows, as an answer hands them out.
      const row = { id: 0, bucketHour: 0, traces: 0 };
      for (const [seriesId, day, traces] of rows) {
        months.add(Object.assign(row, { id: seriesId, bucketHour: hour(day), traces }));
      }
      await store.transaction(({ db }) => months.keep(db));
    }
    const { rows } = await reader.query("SELECT * FROM usage.monthly_total ORDER BY 1, 2");
    return rows.map((row) => [row.series_id, row.month_start, row.traces, row.records].join(" "));
  };
}

test("rows are counted by series and calendar month, across year ends and leap days", async () => {
  const kept = await setupMonths();
  expect(
    await kept([
      [1, "2023-12-31", 1],
      [1, "2024-01-01", 2],
      [1, "2024-02-29", 4],
      [1, "2024-03-01", 8],
      [2, "2023-12-31", 16],
      [3, "2024-03-01", 0],
      [3, "2024-03-31", 0],
      // Before all months so far.
      [4, "2023-11-30", 32],
    ]),
  ).toEqual([
    "1 2023-12-01 1 1",
    "1 2024-01-01 2 1",
    "1 2024-02-01 4 1",
    "1 2024-03-01 8 1",
    "2 2023-12-01 16 1",
    "3 2024-03-01 0 2",
    "4 2023-11-01 32 1",
  ]);
});

test("a later load is added to the month", async () => {
  const kept = await setupMonths();
  expect(
    await kept(
      [
        [1, "2024-03-01", 1],
        [2, "2024-03-01", 2],
      ],
      [],
      [
        [1, "2024-03-02", 4],
        [1, "2024-04-01", 8],
      ],
    ),
  ).toEqual(["1 2024-03-01 5 2", "1 2024-04-01 8 1", "2 2024-03-01 2 1"]);
});

test("a sum beyond 2^53 is exact", async () => {
  const kept = await setupMonths();
  const most = Number.MAX_SAFE_INTEGER;
  expect(
    await kept([
      [1, "2024-03-01", most],
      [1, "2024-03-02", most],
      [1, "2024-03-03", 3],
    ]),
  ).toEqual([`1 2024-03-01 ${2n * BigInt(most) + 3n} 3`]);
});
