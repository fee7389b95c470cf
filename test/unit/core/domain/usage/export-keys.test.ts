import { describe, expect, test } from "vitest";
import { DAY_MS, HOUR_MS, type Stride } from "../../../../../src/core/domain/time/stride.ts";
import { ExportKeys, type ExportRow } from "../../../../../src/core/domain/usage/export.ts";

const START = Date.UTC(2026, 0, 5);
const HOUR0 = START / HOUR_MS;
const DAYS = 20_000;

const row = (day: number, more: Partial<ExportRow> = {}): ExportRow => ({
  bucketStart: START + day * DAY_MS,
  bucketEnd: START + (day + 1) * DAY_MS,
  line: day + 2,
  workspaceId: "w0",
  dimensionId: "u",
  dimensionName: null,
  traces: 1,
  ...more,
});

const exportOf = (days = DAYS) =>
  new ExportKeys({
    window: { start: START, end: START + days * DAY_MS, stride: "day" as Stride },
    groupBy: "user",
    workspaceIds: ["w0", "w1"],
  });

const keyed = (keys: ExportKeys, rows: readonly ExportRow[]) =>
  Array.from(keys.keyed(rows), ({ id, bucketHour, traces }) => [id, (bucketHour - HOUR0) / 24, traces]);

const problemOf = (rows: readonly ExportRow[], days = DAYS) => {
  const keys = exportOf(days);
  try {
    keyed(keys, rows);
    keys.finish();
  } catch (error) {
    return `${(error as { code: string }).code}: ${(error as Error).message}`;
  }
  return undefined;
};

const late = (day: number) => row(day, { bucketEnd: START + (day + 1) * DAY_MS + HOUR_MS });

describe("the rows of an export", () => {
  test("get the number of their key, from one on, and on from there after each `take`", () => {
    const keys = exportOf();
    expect(keyed(keys, [row(0), row(0, { dimensionId: "v", traces: 7 }), row(1)])).toEqual([
      [1, 0, 1],
      [2, 0, 7],
      [1, 1, 1],
    ]);
    const notes = keys.take();
    expect([notes.first, [...notes.keys].map(({ dimensionId }) => dimensionId)]).toEqual([1, ["u", "v"]]);
    expect(keyed(keys, [row(2, { workspaceId: "w1" })])).toEqual([[3, 2, 1]]);
    const more = keys.take();
    expect([more.first, more.keys.length, more.ends]).toEqual([3, 1, []]);
    expect([keys.rows, keys.traces, [...keys.named]]).toEqual([4, 10, [0, 1]]);
    const none = keys.take();
    expect([none.first, none.keys.length, none.ends]).toEqual([4, 0, []]);
    expect(problemOf([row(0), row(1)])).toBeUndefined();
  });

  test("ascend until a bucket comes again, or a key may have been numbered twice", () => {
    const ascends = (...takes: (readonly ExportRow[])[]) => {
      const keys = exportOf();
      for (const rows of takes) {
        keyed(keys, rows);
        keys.take();
      }
      return keys.isAscending;
    };
    expect([ascends([row(0), row(1)]), ascends([row(0), row(1)], [])]).toEqual([true, true]);
    expect([ascends([row(1), row(0)]), ascends([row(0)], [row(1)])]).toEqual([false, false]);
  });

  test("without a bucket have the window's only one", () => {
    const keys = exportOf(1);
    expect(keyed(keys, [row(0, { bucketStart: null, bucketEnd: null })])).toEqual([[1, 0, 1]]);
    expect(keys.take().ends).toEqual([]);
    keys.finish();
  });
});

describe("an export is refused", () => {
  test("for a row that does not fit, with its line and column", () => {
    expect(problemOf([row(0), row(10)], 5)).toMatch(
      /^bucket_misplaced: line 12, column "Time Bucket Start": bucket/,
    );
    const noBucket = row(3, { bucketStart: null, bucketEnd: null });
    expect(problemOf([noBucket])).toMatch(/^bucket_missing: line 5, column "Time Bucket Start": the bucket/);
    expect(problemOf([row(4, { workspaceId: "w9" })])).toMatch(
      /^workspace_unasked: line 6, column "Workspace ID":/,
    );
    expect(problemOf([row(0, { dimensionId: "x".repeat(1_001) })])).toMatch(/^id_too_long: line 2: an id is/);
  });

  test("for ends of another stride, if all or very many are wrong", () => {
    const some = exportOf();
    keyed(some, [row(0), late(1), row(2), late(3)]);
    expect(some.take().ends).toEqual([
      { key: 1, bucketHour: HOUR0 + 24, end: START + 2 * DAY_MS + HOUR_MS },
      { key: 1, bucketHour: HOUR0 + 72, end: START + 4 * DAY_MS + HOUR_MS },
    ]);
    some.finish();
    expect(problemOf([late(1), late(2)])).toBe(
      'stride_differs: line 3, column "Time Bucket End": no bucket ends one day after its start',
    );
    const many = (count: number) => [row(0), ...Array.from({ length: count }, (_, i) => late(i + 1))];
    expect(problemOf(many(10_000))).toBeUndefined();
    expect(problemOf(many(10_001))).toBe(
      'stride_differs: line 3, column "Time Bucket End": 10001 buckets do not end one day after their start',
    );
    const full = exportOf();
    keyed(full, many(10_001));
    expect(full.take().ends).toHaveLength(10_000);
    expect(problemOf([])).toBeUndefined();
  });

  test("for a sum that a number cannot hold", () => {
    const most = Number.MAX_SAFE_INTEGER;
    expect(problemOf([row(0, { traces: most })])).toBeUndefined();
    expect(problemOf([row(0, { traces: most }), row(1)])).toBe(
      "bucket_missing: the sum of all traces is beyond 2^53",
    );
  });
});
