import { describe, expect, test } from "vitest";
import { GRANULAR_USAGE, setup, type UsageAnswer } from "./setup.ts";

const DAY = { start: "2026-06-02", end: "2026-06-03" };
const more = { kind: "langsmith_deployments" };
const of = (answer: UsageAnswer, measure: string): number =>
  answer.usage.reduce((all, record) => all + Number(record[measure]), 0);

describe("deployment usage", () => {
  test("no measure follows from another: a deployment stands by while nothing runs", async () => {
    const { usage } = await setup({ contract: "day-granular" });
    const { usage: records } = await usage({ ...DAY, by: "project", more });
    for (const [one, another] of [
      ["nodes_executed", "agent_runs"],
      ["agent_uptime_seconds", "agent_runs"],
    ] as const) {
      const ratios = records.map((record) => Number(record[one]) / Number(record[another]));
      expect(new Set(ratios).size).toBeGreaterThan(3);
    }
    const users = await usage({ ...DAY, by: "user", more });
    expect(users.usage.filter((record) => record.dimensions.user_id === null)).toHaveLength(1);
  });

  test.each([
    [{}, "2025-12-01"],
    [{ deploymentStart: "2026-03-02" }, "2026-03-02"],
    [{ dataStart: "2026-04-06" }, "2026-03-02"],
  ])("with %j it begins on %s, whenever traces do", async (options, begins) => {
    const { usage } = await setup({ contract: "day-granular", ...options });
    const before = Date.parse(begins) - 20 * 86_400_000;
    expect((await usage({ start: before, end: begins, more })).usage).toEqual([]);
    const first = await usage({ start: begins, end: Date.parse(begins) + 86_400_000, more });
    expect(of(first, "agent_runs")).toBeGreaterThan(0);
  });
});

describe("a contract that knows neither kinds nor tiers", () => {
  test.each([
    ["422", 422],
    ["400", 400],
    ["ignore", 200],
  ] as const)("unknownParameters %s answers %d", async (unknownParameters, status) => {
    const { standin, get, target, usage } = await setup({ unknownParameters });
    for (const parameter of [more, { trace_tier: "longlived" }, { limit: "5" }]) {
      for (const path of [undefined, "/export"] as const) {
        expect((await get(target({ ...DAY, more: parameter }, path))).status).toBe(status);
      }
    }
    expect((await usage(DAY)).usage[0]).not.toHaveProperty("agent_runs");
    // As it is with any contract: its own parameters are still checked.
    const wrong = await get(`${GRANULAR_USAGE}?start_time=2026-06-02&kind=traces`);
    expect(wrong.status).toBe(status === 400 ? 400 : 422);
    if (unknownParameters === "ignore") {
      expect(await usage({ ...DAY, more: { trace_tier: "longlived" } })).toEqual(await usage(DAY));
      expect(await usage({ ...DAY, more })).toEqual(await usage(DAY));
    }
    standin.settings.contract = "day-granular";
    expect((await get(target({ ...DAY, more }))).status).toBe(200);
    expect((await get(target({ ...DAY, more: { limit: "5" } }))).status).toBe(status);
  });
});
