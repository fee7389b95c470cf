import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { controlWindows, REACHES, rangeOfReach } from "../../../../../src/core/domain/planning/windows.ts";
import { subtract, totalMs } from "../../../../../src/core/domain/time/intervals.ts";
import {
  DAY_MS,
  STRIDE_MS,
  strideOfRange,
  TIER_BUCKETS,
} from "../../../../../src/core/domain/time/stride.ts";

const day = (text: string) => Date.parse(text);
const finalTime = fc
  .record({ start: fc.integer({ min: 20_400, max: 20_800 }), days: fc.integer({ min: 1, max: 1500 }) })
  .map(({ start, days }) => ({ start: start * DAY_MS, end: (start + days) * DAY_MS }));

describe("the windows of a check", () => {
  test("lie in final time and in the tier of their stride", () => {
    fc.assert(
      fc.property(finalTime, fc.constantFrom(...REACHES), (final, reach) => {
        const windows = controlWindows(rangeOfReach(reach, final), final);
        expect(windows).toEqual(windows.toSorted((a, b) => a.start - b.start));
        for (const { start, end, stride } of windows) {
          expect(["week", "month", "year"]).toContain(stride);
          expect(start).toBeGreaterThanOrEqual(final.start);
          expect(end).toBeLessThanOrEqual(final.end);
          expect(strideOfRange(end - start)).toBe(stride);
          expect(start % STRIDE_MS[stride]).toBe(0);
          expect((end - start) / STRIDE_MS[stride]).toBeGreaterThanOrEqual(TIER_BUCKETS[stride].min);
        }
      }),
    );
  });

  test("leave less than a week unproved at either end, once there are six weeks", () => {
    fc.assert(
      fc.property(finalTime, fc.constantFrom(...REACHES), (final, reach) => {
        fc.pre(final.end - final.start >= 6 * STRIDE_MS.week);
        const range = rangeOfReach(reach, final);
        const waiting = subtract([range], controlWindows(range, final));
        for (const part of waiting) expect(totalMs([part])).toBeLessThan(STRIDE_MS.week);
        expect(waiting.length).toBeLessThanOrEqual(2);
      }),
    );
  });

  test("of a quarter reach back 92 days", () => {
    const final = { start: day("2026-01-05"), end: day("2026-07-01") };
    expect(rangeOfReach("quarter", final)).toEqual({ start: day("2026-03-31"), end: day("2026-07-01") });
    expect(rangeOfReach("quarter", { ...final, end: day("2026-02-01") }).start).toBe(final.start);
    expect(rangeOfReach("all", final)).toEqual(final);
  });

  test("begin in the month of the last final day", () => {
    const final = { start: day("2026-01-05"), end: day("2026-05-01") };
    expect(rangeOfReach("month", final)).toEqual({ start: day("2026-04-01"), end: day("2026-05-01") });
    expect(rangeOfReach("month", { ...final, end: day("2026-05-02") }).start).toBe(day("2026-05-01"));
  });
});
