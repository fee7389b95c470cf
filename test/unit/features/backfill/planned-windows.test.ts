import { describe, expect, test } from "vitest";
import type { UnstoredRequest } from "../../../../src/core/domain/planning/request.ts";
import { DAY_MS, HOUR_MS, type Stride } from "../../../../src/core/domain/time/stride.ts";
import { GROUPINGS, type GroupBy } from "../../../../src/core/domain/usage/record.ts";
import {
  leftOutOf,
  outsideOf,
  requestsByDimension,
  requestsOfWindow,
  windowsOf,
} from "../../../../src/features/backfill/planned-windows.ts";

const FIRST = Date.UTC(2026, 0, 5);
const at = (day: number) => FIRST + day * DAY_MS;
const request = (groupBy: GroupBy, from: number, to: number, stride: Stride = "day"): UnstoredRequest => ({
  meter: "traces",
  groupBy,
  members: [{ workspaceId: "w" }],
  window: { stride, start: at(from), end: at(to) },
});

test("the windows of requests are each named once, oldest first, with their requests by dimension", () => {
  const requests = [
    request("user", 2, 4),
    request("workspace", 0, 2),
    request("user", 0, 2),
    request("user", 0, 2),
    request("api_key", 0, 1, "hour"),
    request("project", 0, 2, "hour"),
  ];
  const windows = windowsOf(requests);
  expect(windows).toEqual([
    { stride: "hour", start: at(0), end: at(1), requests: [0, 0, 0, 1] },
    { stride: "day", start: at(0), end: at(2), requests: [1, 0, 2, 0] },
    { stride: "hour", start: at(0), end: at(2), requests: [0, 1, 0, 0] },
    { stride: "day", start: at(2), end: at(4), requests: [0, 0, 1, 0] },
  ]);
  expect(windows.map(requestsOfWindow)).toEqual([1, 3, 1, 1]);
  expect(requestsByDimension(requests, ["api_key", "user"])).toEqual([
    { groupBy: "user", requests: 3 },
    { groupBy: "api_key", requests: 1 },
  ]);
  expect(requestsByDimension([], GROUPINGS).map(({ requests }) => requests)).toEqual([0, 0, 0, 0]);
});

describe("what a range loses", () => {
  const lost = (
    from: number,
    to: number,
    range: readonly [number, number] | undefined,
    stride: Stride = "day",
  ) =>
    outsideOf(
      { start: at(from), end: at(to) },
      { range: range && { start: at(range[0]), end: at(range[1]) }, dataStart: at(2), stride, scopes: 3 },
    ).map(
      ({ reason, first, end, buckets }) =>
        `${buckets} ${reason} ${(first - FIRST) / DAY_MS} to ${(end - FIRST) / DAY_MS}`,
    );

  test("is the time before the data start and in the future, in buckets of all scopes", () => {
    expect(lost(0, 6, [2, 4])).toEqual(["6 before_data_start 0 to 2", "6 future 4 to 6"]);
    expect(lost(2, 4, [2, 4])).toEqual([]);
    expect(lost(3, 4, [3, 4])).toEqual([]);
    expect(lost(0, 4, [2, 4])).toEqual(["6 before_data_start 0 to 2"]);
    expect(lost(2, 6, [2, 5])).toEqual(["3 future 5 to 6"]);
    expect(lost(4, 5.5, [4, 5])).toEqual(["3 future 5 to 5.5"]);
    expect(lost(4, 5.5, [4, 5], "hour")).toEqual(["36 future 5 to 5.5"]);
  });

  test("for one reason is added up over scopes, from its first instant to its last", () => {
    const parts = [
      { start: at(4), end: at(6) },
      { start: at(1), end: at(2) + HOUR_MS },
    ];
    const span = { reason: "final", first: at(1), end: at(6) };
    expect(leftOutOf("final", "day", parts)).toEqual([{ ...span, buckets: 4 }]);
    expect(leftOutOf("final", "hour", parts)).toEqual([{ ...span, buckets: 73 }]);
    expect(leftOutOf("final", "week", parts)).toEqual([{ ...span, buckets: 4 }]);
    expect(leftOutOf("final", "day", [])).toEqual([]);
  });
});
