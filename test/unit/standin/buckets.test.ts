import { describe, expect, test } from "vitest";
import type { StandinOptions } from "../../../src/local/standin/server.ts";
import { setup, sum, type UsageAnswer } from "./setup.ts";

const HOUR = 3_600_000;
const START = Date.parse("2026-02-10");

const starts = (answer: UsageAnswer): string[] => [
  ...new Set(answer.usage.map((record) => record.time_bucket)),
];

/** Length of the range in hours, and the stride of its answer: both sides of every edge. */
const TIERS: [number, { days: number; hours: number }][] = [
  [1, { days: 0, hours: 1 }],
  [23, { days: 0, hours: 1 }],
  [24, { days: 1, hours: 0 }],
  [31 * 24, { days: 1, hours: 0 }],
  [32 * 24 - 1, { days: 1, hours: 0 }],
  [32 * 24, { days: 7, hours: 0 }],
  [93 * 24, { days: 7, hours: 0 }],
  [94 * 24 - 1, { days: 7, hours: 0 }],
  [94 * 24, { days: 30, hours: 0 }],
  [366 * 24, { days: 30, hours: 0 }],
  [367 * 24 - 1, { days: 30, hours: 0 }],
  [367 * 24, { days: 365, hours: 0 }],
];

describe("stride", () => {
  test.each(TIERS)("the tiered contract answers %d hours in the stride %j", async (hours, stride) => {
    const { usage } = await setup();
    expect((await usage({ start: START, end: START + hours * HOUR })).stride).toEqual(stride);
  });

  test.each(TIERS)(
    "the day-granular contract answers %d hours in the stride %j, but never in hours",
    async (hours, stride) => {
      const { usage } = await setup({ contract: "day-granular" });
      const expected = stride.hours === 1 ? { days: 1, hours: 0 } : stride;
      expect((await usage({ start: START, end: START + hours * HOUR })).stride).toEqual(expected);
    },
  );

  test("an answer without records has a stride too", async () => {
    const { usage } = await setup();
    const empty = await usage({ start: "2025-01-01", end: "2025-02-01" });
    expect(empty).toEqual({ stride: { days: 1, hours: 0 }, usage: [] });
  });
});

describe("where buckets start", () => {
  const of = async (options: StandinOptions, start: string, end: string) => {
    const { usage } = await setup(options);
    return starts(await usage({ start, end }));
  };

  test("weeks begin at the window's start, or on the epoch's grid (a Thursday)", async () => {
    const window = await of({ align: "window" }, "2026-03-01T10:30:00Z", "2026-04-05T00:00:00Z");
    expect(window.slice(0, 2)).toEqual(["2026-03-01T10:30:00Z", "2026-03-08T10:30:00Z"]);
    const epoch = await of({ align: "epoch" }, "2026-03-01T10:30:00Z", "2026-04-05T00:00:00Z");
    expect(epoch.slice(0, 2)).toEqual(["2026-02-26T00:00:00Z", "2026-03-05T00:00:00Z"]);
  });

  test.each(["window", "epoch"] as const)(
    "hours and days begin on the UTC grid (align %s)",
    async (align) => {
      const hours = await of({ align }, "2026-03-03T10:30:00Z", "2026-03-03T13:30:00Z");
      expect(hours).toEqual(["2026-03-03T11:00:00Z", "2026-03-03T12:00:00Z", "2026-03-03T13:00:00Z"]);
      const days = await of({ align }, "2026-03-03T10:30:00Z", "2026-03-05T10:00:00Z");
      expect(days).toEqual(["2026-03-03T00:00:00Z", "2026-03-04T00:00:00Z", "2026-03-05T00:00:00Z"]);
    },
  );

  test("a bucket that reaches out of the range counts only what lies in the range", async () => {
    const { usage, csv } = await setup({ align: "epoch" });
    const week = await usage({ start: "2026-03-01", end: "2026-04-05" });
    const inside = await usage({ start: "2026-03-01", end: "2026-03-05" });
    const first = week.usage.filter((r) => r.time_bucket === "2026-02-26T00:00:00Z");
    expect(sum({ ...week, usage: first })).toBe(sum(inside));
    const lines = await csv({ start: "2026-03-01", end: "2026-04-05" });
    expect(lines[0]).toMatchObject({
      "Time Bucket Start": "2026-02-26T00:00:00Z",
      "Time Bucket End": "2026-03-05T00:00:00Z",
    });
  });
});

describe("day-granular", () => {
  const hour = { start: "2026-03-03T10:00:00Z", end: "2026-03-03T11:00:00Z" };
  const day = { start: "2026-03-03", end: "2026-03-04" };

  test("every day that the range touches is answered whole", async () => {
    const { usage } = await setup({ contract: "day-granular" });
    expect(await usage(hour)).toEqual(await usage(day));
    const two = await usage({ start: "2026-03-03T23:00:00Z", end: "2026-03-04T01:00:00Z" });
    expect(two).toEqual(await usage({ start: "2026-03-03", end: "2026-03-05" }));
  });

  test("the export by trace tier has one column more", async () => {
    const { csv } = await setup({ contract: "day-granular" });
    const lines = await csv({ ...day, by: "trace_tier" });
    expect(lines.map((line) => line["Trace Tier"])).toEqual(["longlived", "shortlived"]);
  });
});

test("buckets without usage can be sent as 0, but not before the data start or in the future", async () => {
  const { usage, standin } = await setup();
  const day = { start: "2026-03-03T00:00:00Z", end: "2026-03-03T23:00:00Z" };
  const sparse = await usage(day);
  standin.settings.omitZero = false;
  const full = await usage(day);
  expect(full.usage.filter((record) => record.traces > 0)).toEqual(sparse.usage);
  expect(full.usage).toHaveLength(23 * 5);
  expect((await usage({ start: "2026-01-01", end: "2026-01-07" })).usage).toHaveLength(2 * 5);
});
