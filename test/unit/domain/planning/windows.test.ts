import { describe, expect, test } from "vitest";
import { alignRange, planWindows } from "../../../../src/domain/planning/windows.ts";
import { DAY_MS } from "../../../../src/domain/time/stride.ts";

const range = (from: string, to: string) => ({ start: Date.parse(from), end: Date.parse(to) });

describe("planWindows", () => {
  test("returns no window for an empty range and refuses one off the hour or reversed", () => {
    const start = Date.parse("2026-01-05");
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
    expect(alignRange(range("2026-03-08T05:30Z", "2026-03-08T05:30Z"), "hour")).toBeUndefined();
    expect(alignRange(range("2026-03-09", "2026-03-08"), "day")).toBeUndefined();
  });
});
