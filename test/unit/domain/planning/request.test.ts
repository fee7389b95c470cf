import { describe, expect, test } from "vitest";
import { batchesOf, type UsageRequest } from "../../../../src/domain/planning/request.ts";
import { DAY_MS } from "../../../../src/domain/time/stride.ts";
import type { GroupBy } from "../../../../src/domain/usage/record.ts";
import { fewestRequests } from "../../../support/fewest-requests.ts";

const members = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ workspaceId: `w${i}`, scopeId: 100 + i }));
const request = (start: number, end: number, groupBy: GroupBy = "user", of = 1): UsageRequest => ({
  meter: "traces",
  groupBy,
  window: { start: start * DAY_MS, end: end * DAY_MS, stride: "day" },
  members: members(of),
});

describe("requests", () => {
  test("by workspace hold 50 workspaces at most, and all others one", () => {
    expect(
      batchesOf({ meter: "traces", groupBy: "workspace" }, members(120)).map(({ length }) => length),
    ).toEqual([50, 50, 20]);
    expect(batchesOf({ meter: "traces", groupBy: "workspace" }, members(120)).flat()).toEqual(members(120));
    expect(batchesOf({ meter: "traces", groupBy: "user" }, members(3))).toEqual(
      members(3).map((one) => [one]),
    );
    expect(batchesOf({ meter: "sandboxes", groupBy: "workspace" }, members(3))).toHaveLength(3);
    expect(batchesOf({ meter: "traces", groupBy: "workspace" }, [])).toEqual([]);
  });
});

describe("the fewest requests", () => {
  test("count a gapless run by the longest window of its tier", () => {
    expect(fewestRequests([])).toBe(0);
    expect(fewestRequests([request(100, 131)])).toBe(1);
    expect(fewestRequests([request(100, 120), request(120, 131)])).toBe(1);
    expect(fewestRequests([request(100, 120), request(120, 132)])).toBe(2);
    expect(fewestRequests([request(100, 101), request(102, 103)])).toBe(2);
  });
});
