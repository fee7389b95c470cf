import { describe, expect, test } from "vitest";
import { setup, sum } from "./setup.ts";

describe("where buckets start", () => {
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
