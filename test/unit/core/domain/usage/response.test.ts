import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../../../../src/core/domain/time/stride.ts";
import type { UsageRecord } from "../../../../../src/core/domain/usage/record.ts";
import { ResponseCollector } from "../../../../../src/core/domain/usage/response.ts";
import { KeyNumbering, type Requested } from "../../../../../src/core/domain/usage/response-keys.ts";

const seed = 20_260_105;
const START = Date.UTC(2026, 0, 5);
const HOUR0 = START / HOUR_MS;
const WORKSPACES = ["w0", "w1", "w2"];
const requested: Requested = {
  window: { start: START, end: START + 10 * DAY_MS, stride: "day" },
  groupBy: "user",
  workspaceIds: WORKSPACES,
};

const record = (day: number, traces = 1, more: Partial<UsageRecord> = {}): UsageRecord => ({
  bucketStart: START + day * DAY_MS,
  workspaceId: "w0",
  dimensionId: "u",
  dimensionName: null,
  traces,
  ...more,
});

const collect = (records: readonly UsageRecord[], to: Partial<Requested> = {}) => {
  const collector = new ResponseCollector({ ...requested, ...to });
  collector.add(records);
  return collector;
};

const rowsOf = (collector: ResponseCollector, ids?: readonly number[]) =>
  Array.from(collector.rows(ids), ({ id, bucketHour, traces }) => [id, (bucketHour - HOUR0) / 24, traces]);

describe("a response's records", () => {
  const any = fc.record({
    day: fc.nat(9),
    workspace: fc.nat(2),
    id: fc.constantFrom("a", "b", "c", "d"),
    traces: fc.nat(5),
  });

  test(`come out in order of key and bucket, added up, whatever the order they came in (seed ${seed})`, () => {
    fc.assert(
      fc.property(fc.array(any, { maxLength: 60 }), fc.boolean(), (rows, reverse) => {
        const collector = collect(
          rows.map(({ day, workspace, id, traces }) =>
            record(day, traces, { workspaceId: `w${workspace}`, dimensionId: id }),
          ),
        );
        const nameOf = ({ workspace, id }: { workspace: number; id: string }) => `${workspace} ${id}`;
        const names = [...new Set(rows.map(nameOf))];
        expect(
          [...collector.keys].map(({ workspace, dimensionId }) => `${workspace} ${dimensionId}`),
        ).toEqual(names);
        expect(collector.named()).toEqual(new Set(rows.map(({ workspace }) => workspace)));
        expect(collector.records).toBe(rows.length);
        expect(collector.traces).toBe(rows.reduce((sum, { traces }) => sum + traces, 0));
        const ids = names.map((_, i) => (reverse ? 1_000 - i : i));
        const sums = new Map<string, [number, number, number]>();
        for (const row of rows) {
          const id = ids[names.indexOf(nameOf(row))] as number;
          const sum = sums.get(`${id} ${row.day}`)?.[2] ?? 0;
          sums.set(`${id} ${row.day}`, [id, row.day, sum + row.traces]);
        }
        const expected = [...sums.values()].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
        expect(rowsOf(collector, reverse ? ids : undefined)).toEqual(expected);
        for (const [i, key] of [...collector.keys].entries()) {
          const hours = rows.filter((row) => nameOf(row) === names[i]).map(({ day }) => HOUR0 + day * 24);
          expect([key.firstHour, key.lastHour]).toEqual([Math.min(...hours), Math.max(...hours)]);
        }
      }),
      { seed, numRuns: 500 },
    );
  });

  test("may be more than a first block holds", () => {
    const records = Array.from({ length: 5_000 }, (_, i) => record(i % 10, i, { dimensionId: `u${i >> 1}` }));
    const rows = rowsOf(collect(records));
    expect(rows).toHaveLength(5_000);
    expect(rows[4_999]).toEqual([2_499, 9, 4_999]);
    expect(rows[1_024]).toEqual([512, 4, 1_024]);
  });

  test("without a bucket have the window's only one", () => {
    const window = { start: START + DAY_MS, end: START + 2 * DAY_MS, stride: "day" as const };
    const collector = collect([record(0, 4, { bucketStart: null })], { window });
    expect(rowsOf(collector)).toEqual([[0, 1, 4]]);
    expect(collector.problem("day")).toBeUndefined();
  });
});

describe("a response is refused", () => {
  const misplaced = record(10);
  const unasked = record(1, 1, { workspaceId: "w9" });
  const problemOf = (...records: UsageRecord[]) => collect(records).problem("day");

  test("for another stride than the planned one", () => {
    const collector = collect([record(0)]);
    expect(collector.problem("day")).toBeUndefined();
    expect(collector.problem("hour")).toEqual({
      kind: "grid",
      code: "stride_differs",
      message: "planned day buckets, the response's stride is hour",
    });
    expect(collector.problem(undefined)?.message).toContain("none of the known ones");
  });

  test("for its first record that does not fit, or for its grid", () => {
    expect(problemOf(record(0), unasked)).toEqual({
      kind: "record",
      code: "workspace_unasked",
      message: "workspace w9 was not requested",
    });
    const noBucket = record(0, 1, { bucketStart: null });
    expect(problemOf(unasked, noBucket)?.code).toBe("workspace_unasked");
    expect(problemOf(noBucket, unasked)).toMatchObject({ kind: "record", code: "bucket_missing" });
    expect(problemOf(misplaced, unasked)).toMatchObject({ kind: "grid", code: "bucket_misplaced" });
    expect(problemOf(unasked, misplaced)).toMatchObject({ kind: "grid", code: "bucket_misplaced" });
    const other = record(11);
    expect(problemOf(misplaced, other)?.message).toContain("2026-01-15");
  });

  test("and counts the record that does not fit, but not its traces", () => {
    const collector = collect([record(0, 3), { ...unasked, traces: 5 }]);
    expect([collector.records, collector.traces]).toEqual([2, 3]);
    expect(rowsOf(collector)).toEqual([[0, 0, 3]]);
  });

  test("for a sum that a number cannot hold, unless there is another reason", () => {
    const most = Number.MAX_SAFE_INTEGER;
    expect(problemOf(record(0, most))).toBeUndefined();
    expect(problemOf(record(0, most), record(1))).toEqual({
      kind: "record",
      code: "bucket_missing",
      message: "the sum of all traces is beyond 2^53",
    });
    expect(problemOf(record(0, most), record(1), unasked)?.code).toBe("workspace_unasked");
  });
});

describe("the workspace of a record", () => {
  const of = (more: Partial<UsageRecord>, to: Partial<Requested> = {}) => {
    const numbering = new KeyNumbering({ ...requested, ...to });
    const number = numbering.numberOf(record(0, 1, more));
    const [key] = numbering.keys;
    return key === undefined ? number : [key.workspace, key.dimensionId];
  };
  const byWorkspace = { groupBy: "workspace" as const };

  test("is the one it names, or the only one requested", () => {
    expect(of({ workspaceId: "w1" })).toEqual([1, "u"]);
    expect(of({ workspaceId: null }, { workspaceIds: ["w5"] })).toEqual([0, "u"]);
    expect(of({ workspaceId: null })).toEqual({
      code: "workspace_unasked",
      message: "workspace (none) was not requested",
    });
    expect(of({ workspaceId: "w9" }, { workspaceIds: ["w5"] })).toMatchObject({ code: "workspace_unasked" });
  });

  test("is its id, by workspace", () => {
    expect(of({ workspaceId: null, dimensionId: "w1" }, byWorkspace)).toEqual([1, "w1"]);
    expect(of({ workspaceId: "w0", dimensionId: "w1" }, byWorkspace)).toEqual([1, "w1"]);
    expect(of({ workspaceId: "w1", dimensionId: "" }, byWorkspace)).toEqual([1, "w1"]);
    const only = { ...byWorkspace, workspaceIds: ["w5"] };
    expect(of({ workspaceId: null, dimensionId: "" }, only)).toEqual([0, "w5"]);
    expect(of({ workspaceId: null, dimensionId: "w9" }, byWorkspace)).toMatchObject({
      code: "workspace_unasked",
    });
  });
});

describe("a response without an end takes bounded memory: it is refused", () => {
  const most = 50;
  const fill = (nth: (i: number) => Partial<UsageRecord>, before: readonly UsageRecord[] = []) => {
    const collector = new ResponseCollector(requested, most);
    collector.add(before);
    for (let i = 0; i < 3_000; i++) collector.add([record(0, 1, nth(i))]);
    return collector;
  };
  const long = (i: number) => `${i} ${"x".repeat(400)}`;

  test.each([
    ["ids", (i: number) => ({ dimensionId: `u${i}` }), most + 1],
    ["names of one id", (i: number) => ({ dimensionName: `n${i}` }), 1],
    ["names of several ids", (i: number) => ({ dimensionId: `u${i % 10}`, dimensionName: `n${i}` }), 10],
    ["long ids", (i: number) => ({ dimensionId: long(i) }), most / 2],
    ["long names", (i: number) => ({ dimensionId: `u${i}`, dimensionName: long(i) }), most / 2],
  ])("with endless %s", (_, nth, keys) => {
    const collector = fill(nth);
    expect(collector.isFull).toBe(true);
    expect(collector.problem("day")).toMatchObject({ kind: "record", code: "ids_too_many" });
    expect(collector.keys).toHaveLength(keys);
    const names = collector.keys.reduce((sum, key) => sum + key.names.length, 0);
    expect(names).toBeLessThanOrEqual(most + 1);
  });

  test("with more names of one id than are searched in good time", () => {
    const collector = new ResponseCollector(requested);
    for (let i = 0; i < 3_000; i++) collector.add([record(0, 1, { dimensionName: `n${i}` })]);
    expect(collector.problem("day")?.code).toBe("ids_too_many");
    expect(collector.keys[0]?.names.length).toBeLessThan(1_100);
  });

  test("also after another problem, and in another stride", () => {
    const misplaced = record(0, 1, { bucketStart: START + 1 });
    const collector = fill((i) => ({ dimensionId: `u${i}` }), [misplaced]);
    expect(collector.keys).toHaveLength(most + 1);
    expect(collector.problem("hour")?.code).toBe("ids_too_many");
  });

  test("not with the most that is read", () => {
    const collector = new ResponseCollector(requested, most);
    for (let i = 0; i < 2 * most; i++)
      collector.add([record(i % 2, 1, { dimensionId: `u${i % most}`, dimensionName: "n" })]);
    expect(collector.problem("day")).toBeUndefined();
    expect(collector.traces).toBe(2 * most);
  });
});
