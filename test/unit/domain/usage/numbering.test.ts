import { describe, expect, test } from "vitest";
import { DAY_MS, type Stride } from "../../../../src/domain/time/stride.ts";
import { KeyNumbering, type Requested } from "../../../../src/domain/usage/answer-keys.ts";
import type { UsageRecord } from "../../../../src/domain/usage/record.ts";

const START = Date.UTC(2026, 0, 5);
const requested: Requested = {
  window: { start: START, end: START + 10 * DAY_MS, stride: "day" as Stride },
  groupBy: "user",
  workspaceIds: ["w0", "w1"],
};

const record = (day: number, more: Partial<UsageRecord> = {}): UsageRecord => ({
  bucketStart: START + day * DAY_MS,
  workspaceId: "w0",
  dimensionId: "u",
  dimensionName: null,
  traces: 1,
  ...more,
});

const number = (records: readonly UsageRecord[], to: Partial<Requested> = {}) => {
  const numbering = new KeyNumbering({ ...requested, ...to });
  return { numbering, numbers: records.map((one) => numbering.numberOf(one)) };
};

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
