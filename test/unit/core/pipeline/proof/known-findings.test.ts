import { describe, expect, test } from "vitest";
import { DAY_MS } from "../../../../../src/core/domain/time/stride.ts";
import { explain, narrowest } from "../../../../../src/core/pipeline/proof/control.ts";
import type { Finding } from "../../../../../src/core/store/proof/write-differences.ts";

/** A finding that explains too much hides an error; one that explains too little is asked about in every check. */

const FIRST = Date.UTC(2026, 0, 5);
const finding = (from: number, to: number, error: number | null, more: Partial<Finding> = {}): Finding => ({
  scopeId: 1,
  dimensionId: "a",
  measure: "traces",
  kind: "stride_total",
  state: "platform_disagrees",
  start: FIRST + from * DAY_MS,
  end: FIRST + to * DAY_MS,
  storedTraces: 10,
  controlTraces: error === null ? null : 10 + error,
  ...more,
});
const WEEK = finding(0, 7, 5);

describe("a difference", () => {
  test("is explained by findings inside it that add up to it, to the trace", () => {
    const parts = [finding(0, 1, 2), finding(6, 7, 3)];
    expect(explain(WEEK, parts)).toEqual(parts);
    expect(explain(WEEK, [...parts, finding(6, 8, 9), finding(-1, 1, 9)])).toEqual(parts);
    expect(explain(WEEK, [finding(0, 7, 5)])).toHaveLength(1);
    expect(explain(WEEK, [finding(0, 1, 9), finding(1, 2, -4)])).toHaveLength(2);
    expect(explain(finding(0, 7, -5), [finding(0, 1, 5)])).toBeUndefined();
  });

  test("is not explained by one trace more or less, or by nothing", () => {
    expect(explain(WEEK, [finding(0, 1, 4)])).toBeUndefined();
    expect(explain(WEEK, [finding(0, 1, 6)])).toBeUndefined();
    expect(explain(WEEK, [])).toBeUndefined();
    expect(explain(finding(0, 7, 0), [])).toBeUndefined();
  });

  test.each<[string, Finding]>([
    ["scope", finding(0, 1, 5, { scopeId: 2 })],
    ["id", finding(0, 1, 5, { dimensionId: "b" })],
    ["measure", finding(0, 1, 5, { measure: "agent_runs" })],
    ["time before", finding(-1, 7, 5)],
    ["time after", finding(0, 8, 5)],
  ])("is not explained by one of another %s", (_, other) => {
    expect(explain(WEEK, [other])).toBeUndefined();
    expect(explain(WEEK, [finding(0, 1, 5), other])).toEqual([finding(0, 1, 5)]);
  });

  test("counts a side that has nothing as zero", () => {
    const removed = finding(0, 7, null);
    expect(explain(removed, [finding(2, 3, -10)])).toHaveLength(1);
    expect(explain(removed, [finding(2, 3, 10)])).toBeUndefined();
    const added = finding(0, 7, 0, { storedTraces: null });
    expect(explain(added, [finding(2, 3, 10)])).toHaveLength(1);
  });
});

test("only the narrowest findings stay: each once, and those that nothing explains", () => {
  const [first, last] = [finding(0, 1, 2), finding(6, 7, 3)];
  expect(narrowest([WEEK, first, last])).toEqual([first, last]);
  expect(narrowest([first, { ...first }, last, WEEK])).toEqual([first, last]);
  const others = [
    finding(0, 1, 2, { dimensionId: "b" }),
    finding(0, 1, 2, { scopeId: 2 }),
    finding(0, 1, 2, { measure: "agent_runs" }),
    finding(1, 2, 2),
    finding(0, 2, 9),
  ];
  expect(narrowest([first, ...others])).toEqual([first, ...others]);
  const unexplained = finding(0, 7, 6);
  expect(narrowest([unexplained, first, last])).toEqual([unexplained, first, last]);
  expect(narrowest([])).toEqual([]);
});
