import { describe, expect, test } from "vitest";
import { DAY_MS, HOUR_MS, type Stride } from "../../../../src/domain/time/stride.ts";
import { KeyNumbering, type Requested } from "../../../../src/domain/usage/answer-keys.ts";
import type { UsageRecord } from "../../../../src/domain/usage/record.ts";

const START = Date.UTC(2026, 0, 5);
const HOUR0 = START / HOUR_MS;
const requested: Requested = {
  window: { start: START, end: START + 10 * DAY_MS, stride: "day" as Stride },
  groupBy: "user",
  workspaceIds: ["w0", "w1"],
};

const record = (day: number, more: Partial<UsageRecord> = {}): UsageRecord => ({
  ...{
    bucketStart: START + day * DAY_MS,
    workspaceId: "w0",
    dimensionId: "u",
    dimensionName: null,
    traces: 1,
  },
  ...more,
});

const number = (records: readonly UsageRecord[], to: Partial<Requested> = {}) => {
  const numbering = new KeyNumbering({ ...requested, ...to });
  return { numbering, numbers: records.map((one) => numbering.numberOf(one)) };
};

describe("keys", () => {
  test("are numbered in order of appearance, apart for each workspace", () => {
    const order = ["w0 a", "w0 b", "w1 a", "w0 a", "w0 b", "w1 a", "w1 b", "w0 b", "w1 a", "w0 a"];
    const { numbers, numbering } = number(
      order.map((one) => record(0, { workspaceId: one.slice(0, 2), dimensionId: one.slice(3) })),
    );
    expect(numbers).toEqual([0, 1, 2, 0, 1, 2, 3, 1, 2, 0]);
    expect([...numbering.keys].map(({ workspace, dimensionId }) => [workspace, dimensionId])).toEqual([
      [0, "a"],
      [0, "b"],
      [1, "a"],
      [1, "b"],
    ]);
  });

  test("ascend until a bucket comes again or too late", () => {
    const ascends = (...days: number[]) => number(days.map((day) => record(day))).numbering.isAscending;
    expect([ascends(0, 1, 5), ascends(0, 1, 1), ascends(2, 1)]).toEqual([true, false, false]);
    const { numbering } = number([record(2), record(1), record(3), record(2)]);
    expect(numbering.keys.at(0)).toMatchObject({ firstHour: HOUR0 + 24, lastHour: HOUR0 + 72 });
  });

  test("have their names with first and last bucket", () => {
    const records = [
      record(3, { dimensionName: "Ann" }),
      record(5, { dimensionName: "Anna" }),
      record(1, { dimensionName: "Ann" }),
      record(4, { dimensionName: "Ann" }),
      record(2, { dimensionName: "Ann" }),
      record(2, { dimensionId: "other", dimensionName: "Bo" }),
      record(6),
    ];
    const { numbering } = number(records);
    expect([...numbering.keys].map(({ names }) => names)).toEqual([
      [
        { name: "Ann", firstHour: HOUR0 + 24, lastHour: HOUR0 + 96 },
        { name: "Anna", firstHour: HOUR0 + 120, lastHour: HOUR0 + 120 },
      ],
      [{ name: "Bo", firstHour: HOUR0 + 48, lastHour: HOUR0 + 48 }],
    ]);
    expect([numbering.keys.mostNames, numbering.keys.moreNames]).toEqual([2, 1]);
    const unnamed = number(records, { withNames: false }).numbering;
    expect([...unnamed.keys].map(({ names }) => names)).toEqual([[], []]);
    expect([unnamed.keys.mostNames, unnamed.keys.moreNames]).toEqual([0, 0]);
  });
});

describe("the workspace of a record", () => {
  const of = (more: Partial<UsageRecord>, to: Partial<Requested> = {}) => {
    const { numbers, numbering } = number([record(0, more)], to);
    const [key] = numbering.keys;
    return key === undefined ? numbers[0] : [key.workspace, key.dimensionId];
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

describe("a record does not fit", () => {
  const codeOf = (more: Partial<UsageRecord>, to: Partial<Requested> = {}) => {
    const [found] = number([record(0, more)], to).numbers;
    return typeof found === "number" ? "fits" : found?.code;
  };

  test("outside of the window or off its grid, even after one that fits", () => {
    const at = (ms: number) => codeOf({ bucketStart: START + ms });
    expect([at(0), at(9 * DAY_MS)]).toEqual(["fits", "fits"]);
    expect([at(-DAY_MS), at(10 * DAY_MS), at(HOUR_MS)]).toEqual(Array(3).fill("bucket_misplaced"));
    const { numbers } = number([record(0), record(10), record(0)]);
    expect(numbers.map((one) => typeof one)).toEqual(["number", "object", "number"]);
    expect(numbers[1]).toMatchObject({
      message: "bucket 2026-01-15T00:00:00.000Z is outside the window or off the day grid",
    });
  });

  test("without a bucket where the window has several", () => {
    const window = { ...requested.window, end: START + DAY_MS };
    expect(codeOf({ bucketStart: null }, { window })).toBe("fits");
    expect(number([record(0, { bucketStart: null })]).numbers[0]).toEqual({
      code: "bucket_missing",
      message: "the bucket is empty, but the window has several",
    });
  });

  test("with an id of more than 1000 bytes", () => {
    expect(codeOf({ dimensionId: "x".repeat(1_000) })).toBe("fits");
    expect(codeOf({ dimensionId: "é".repeat(501) })).toBe("id_too_long");
    expect(number([record(0, { dimensionId: "x".repeat(1_001) })]).numbers[0]).toEqual({
      code: "id_too_long",
      message: `an id is longer than 1000 bytes: ${"x".repeat(40)}...`,
    });
  });
});
