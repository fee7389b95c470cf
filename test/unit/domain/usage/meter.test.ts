import { expect, test } from "vitest";
import { METER, METERS, type Meter, meterOf, numberName } from "../../../../src/domain/usage/meter.ts";
import { dimensionOf, GROUPINGS, NO_ID, shownId } from "../../../../src/domain/usage/record.ts";

test("a meter is that of a kind and a tier together, and of nothing else", () => {
  for (const meter of METERS) expect(meterOf(METER[meter].kind, METER[meter].tier)).toBe(meter);
  expect(meterOf("langsmith_deployments", "longlived")).toBeUndefined();
  expect(meterOf("runs", "all")).toBeUndefined();
});

test("ids by project are projects, but for deployments, sandboxes and evaluators", () => {
  for (const meter of METERS) {
    const dimensions = GROUPINGS.map((groupBy) => dimensionOf(meter, groupBy));
    const others: Partial<Record<Meter, string>> = {
      deployments: "deployment",
      sandboxes: "sandbox",
      evaluators: "run_rule",
    };
    const projects = others[meter] ?? "project";
    expect(dimensions).toEqual(GROUPINGS.map((groupBy) => (groupBy === "project" ? projects : groupBy)));
  }
});

test("no id is shown as (none), and an id that looks like it is told apart", () => {
  const ids = [NO_ID, "(none)", "\\(none)", "\\\\(none)", "a (none)", "(none) a", "none", "w"];
  const shown = ids.map(shownId);
  expect(shown).toEqual([
    "(none)",
    "\\(none)",
    "\\\\(none)",
    "\\\\\\(none)",
    "a (none)",
    "(none) a",
    "none",
    "w",
  ]);
  expect(new Set(shown).size).toBe(ids.length);
});

test("a number is named by its meter, and by its measure where records carry several", () => {
  expect(METERS.map((meter) => numberName(meter, "agent_runs"))).toEqual([
    "traces",
    "long-lived traces",
    "short-lived traces",
    "agent_runs",
    "agent_runs",
    "agent_runs",
  ]);
});
