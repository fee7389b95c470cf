import { describe, expect, test } from "vitest";
import {
  meterOfMetric,
  type ProviderReading,
  totalsOfMonth,
} from "../../../../../src/core/domain/months/provider.ts";

const month = { start: Date.parse("2026-03-01"), end: Date.parse("2026-04-01") };
const MIDDLE = Date.parse("2026-03-15");
const reading = (changed: Partial<ProviderReading> = {}): ProviderReading => ({
  customerId: "c",
  metricId: "m",
  metricName: "LangSmith Traces (Base Charge)",
  ...month,
  value: 12,
  workspaces: new Map([["a", 12]]),
  ...changed,
});
const extended = {
  metricId: "x",
  metricName: "LangSmith Traces (Extended Data Retention Upgrades)",
  value: 0,
  workspaces: new Map(),
};
const outcomes = (readings: readonly ProviderReading[], known = ["a"]) =>
  totalsOfMonth([...readings, reading(extended)], { month, known })
    .filter(({ meter }) => meter !== "longlived")
    .map(
      ({ workspaceId, value, unusable }) => `${workspaceId ?? "all"} ${value} ${unusable ?? "comparable"}`,
    );

test.each([
  ["LangSmith Traces (Base Charge)", "traces"],
  ["Traces", "traces"],
  ["LangSmith Traces (Extended Data Retention Upgrades)", "longlived"],
  ["Long-lived traces", "longlived"],
  ["Long lived trace", "longlived"],
  ["Trace count", "traces"],
  ["Extended traces deleted", undefined],
  ["LangSmith Deployment Runs", "agent_runs"],
  ["LangSmith Deployment Nodes Executed", "nodes_executed"],
  ["LangSmith Deployments", undefined],
  ["LangSmith Deployment Uptime", undefined],
  ["LangSmith Fleet Runs", undefined],
  ["Trace deletions", undefined],
  ["Deployment traces", undefined],
  ["", undefined],
  [null, undefined],
])("the metric %s counts %s", (name, meter) => expect(meterOfMetric(name)).toBe(meter));

describe("the totals of a month", () => {
  test("are of each workspace, and readings of its parts are added up", () => {
    expect(outcomes([reading()])).toEqual(["all 12 sum_of_workspaces", "a 12 comparable"]);
    const halves = [
      reading({ end: MIDDLE, value: 5, workspaces: new Map([["a", 5]]) }),
      reading({ start: MIDDLE, value: 8, workspaces: new Map([["b", 8]]) }),
    ];
    expect(outcomes(halves)).toEqual(["all 13 sum_of_workspaces", "a 5 comparable", "b 8 comparable"]);
  });

  test("are 0 for a workspace that is not named, but only if all others are the whole", () => {
    expect(outcomes([reading()], ["a", "b"]).at(-1)).toBe("b 0 comparable");
    expect(outcomes([reading({ value: 13 })], ["a", "b"])).toEqual([
      "all 13 not_the_sum",
      "a 12 comparable",
      "b null unknown_value",
    ]);
    expect(outcomes([reading({ workspaces: new Map() })])).toEqual([
      "all 12 not_the_sum",
      "a null unknown_value",
    ]);
  });

  test("are unknown where the provider does not know them", () => {
    expect(outcomes([reading({ value: null, workspaces: new Map([["a", null]]) })])).toEqual([
      "all null unknown_value",
      "a null unknown_value",
    ]);
    const halves = [
      reading({ end: MIDDLE, value: null, workspaces: new Map([["a", null]]) }),
      reading({ start: MIDDLE, value: 8, workspaces: new Map([["a", 8]]) }),
    ];
    for (const both of [halves, halves.toReversed()]) {
      expect(outcomes(both)).toEqual(["all null unknown_value", "a null unknown_value"]);
    }
  });

  test("are of the whole month, in any order, without a gap or a part that counts twice, for each customer", () => {
    const parts = (...ends: readonly (readonly [start: number, end: number])[]) =>
      outcomes(ends.map(([start, end]) => reading({ start, end })))[1]?.split(" ")[2];
    const { start, end } = month;
    expect(parts([MIDDLE, end], [start, MIDDLE])).toBe("comparable");
    expect(parts([start, MIDDLE], [MIDDLE, end])).toBe("comparable");
    expect(parts([start, MIDDLE - 1], [MIDDLE, end])).toBe("other_period");
    expect(parts([start, MIDDLE + 1], [MIDDLE, end])).toBe("other_period");
    for (const halfOf of ["c", "d"]) {
      const [whole, half] = [halfOf === "c" ? "d" : "c", reading({ customerId: halfOf, end: MIDDLE })];
      expect(outcomes([half, reading({ customerId: whole })])[1]).toContain("other_period");
    }
  });

  test("take their name from any part that has one, and list workspaces in order", () => {
    const [unnamed, named] = [
      reading({ end: MIDDLE, metricName: null }),
      reading({ start: MIDDLE, workspaces: new Map([["b", 12]]) }),
    ];
    expect(outcomes([unnamed, named], ["c", "a", "0"])).toEqual([
      "all 24 sum_of_workspaces",
      "0 0 comparable",
      "a 12 comparable",
      "b 12 comparable",
      "c 0 comparable",
    ]);
    // Nothing is known of what this counts, so no workspace has 0 of it.
    const [whole, ...rest] = totalsOfMonth([unnamed], { month, known: ["a", "b"] });
    expect(whole).toMatchObject({ metricName: null, meter: null, unusable: "unknown_metric" });
    expect(rest.map(({ workspaceId, metricId, unusable }) => [workspaceId, metricId, unusable])).toEqual([
      ["a", "m", "unknown_metric"],
      [null, "", "no_metric"],
      [null, "", "no_metric"],
    ]);
  });

  test("say why they cannot be compared, and are kept all the same", () => {
    expect(outcomes([reading({ end: MIDDLE })])[1]).toBe("a 12 other_period");
    expect(outcomes([reading({ start: MIDDLE, end: month.end + 1 })])[1]).toBe("a 12 other_period");
    expect(outcomes([reading({ value: 0.5, workspaces: new Map([["a", 0.5]]) })])[1]).toBe("a 0.5 not_whole");
    expect(outcomes([reading({ metricName: "LangSmith Fleet Runs" })])).toEqual([
      "all 12 unknown_metric",
      "a 12 unknown_metric",
      "all null no_metric",
    ]);
    expect(outcomes([reading(), reading({ metricId: "n" })]).map((one) => one.split(" ")[2])).toEqual(
      Array(4).fill("several_metrics"),
    );
  });

  test("of two customers of one contract are added up", () => {
    const both = [reading(), reading({ customerId: "d", value: 3, workspaces: new Map([["b", 3]]) })];
    expect(outcomes(both)).toEqual(["all 15 sum_of_workspaces", "a 12 comparable", "b 3 comparable"]);
  });
});
