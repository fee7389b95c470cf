import { describe, expect, test } from "vitest";
import { alignRange, planWindows } from "../../../../src/domain/planning/windows.ts";
import { DAY_MS, type Stride } from "../../../../src/domain/time/stride.ts";
import type { Interval } from "../../../../src/domain/time/window.ts";

/** An instant from `2026-01-05`, `2026-01-05T22:00` or longer, always UTC. */
const utc = (text: string) => Date.parse(text.includes("T") ? `${text}Z` : `${text}T00:00Z`);
const range = (from: string, to: string): Interval => ({ start: utc(from), end: utc(to) });

/** A plan with its instants, to the hour. */
function dated(interval: Interval, stride: Stride): string[] {
  const iso = (instant: number) => new Date(instant).toISOString().slice(0, 13);
  return planWindows(interval, stride).map(({ start, end, stride: at }) => `${iso(start)} ${iso(end)} ${at}`);
}

describe("planWindows on real dates", () => {
  test("covers what a stride leaves over with the next finer one", () => {
    // The grid of years falls on 2026-12-18 and 2028-12-17; the three whole months after it are too few for a window.
    expect(dated(range("2026-01-05", "2029-03-25"), "year")).toEqual([
      "2026-01-05T00 2026-01-07T00 day",
      "2026-01-07T00 2026-12-03T00 month",
      "2026-12-03T00 2026-12-18T00 day",
      "2026-12-18T00 2028-12-17T00 year",
      "2028-12-17T00 2028-12-21T00 day",
      "2028-12-21T00 2029-03-22T00 week",
      "2029-03-22T00 2029-03-25T00 day",
    ]);
  });

  test("returns no window for an empty range and refuses one off the hour or reversed", () => {
    const start = utc("2026-01-05");
    expect(planWindows({ start, end: start }, "day")).toEqual([]);
    expect(() => planWindows({ start: start + 1, end: start + DAY_MS }, "day")).toThrow(RangeError);
    expect(() => planWindows({ start, end: start + DAY_MS - 1 }, "day")).toThrow(RangeError);
    expect(() => planWindows({ start: start + DAY_MS, end: start }, "day")).toThrow(
      "align the range to the hour first",
    );
    expect(() => planWindows({ start: Number.NaN, end: start }, "day")).toThrow(RangeError);
    expect(() => planWindows({ start, end: Number.POSITIVE_INFINITY }, "day")).toThrow(RangeError);
  });
});

describe("alignRange", () => {
  test("keeps an empty or reversed range empty, on the grid and off it", () => {
    expect(alignRange(range("2026-03-08", "2026-03-08"), "day")).toBeUndefined();
    expect(alignRange(range("2026-03-08T05:30", "2026-03-08T05:30"), "hour")).toBeUndefined();
    expect(alignRange(range("2026-03-09", "2026-03-08"), "day")).toBeUndefined();
  });
});
