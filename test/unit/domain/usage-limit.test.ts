import { expect, test } from "vitest";
import { describeLimit, type LimitUse, marksPassed } from "../../../src/domain/bill/usage-limit.ts";

test.each([
  [null, 0],
  [0, 0],
  [49.99, 0],
  [50, 1],
  [74.99, 1],
  [75, 2],
  [90, 3],
  [99.99, 3],
  [100, 4],
  [250, 4],
])("%s percent is past %i marks", (percent, marks) => {
  expect(marksPassed({ percent })).toBe(marks);
});

test("a limit is told with its usage, which is the least that it can be where a day is not loaded", () => {
  const use: LimitUse = {
    workspaceId: "(all)",
    workspaceName: null,
    limitType: "monthly_traces",
    value: 2000,
    isRejecting: false,
    month: "2026-11-01",
    traces: 1999,
    isComplete: true,
    daysFinal: 0,
    percent: 99.95,
    reachedOn: null,
    readAt: "2026-11-04T00:00:00Z",
  };
  const said = "1,999 of 2,000 traces (99.9 %) in 2026-11.";
  expect(describeLimit(use)).toBe(`Monthly limit of traces, whole organization: ${said}`);
  expect(describeLimit({ ...use, isComplete: false })).toContain(`: at least ${said}`);
});
