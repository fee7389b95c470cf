import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { alignRange, planWindows } from "../../../../../src/core/domain/planning/windows.ts";
import {
  DAY_MS,
  HOUR_MS,
  STRIDE_MS,
  STRIDES,
  type Stride,
  strideOfRange,
  TIER_BUCKETS,
} from "../../../../../src/core/domain/time/stride.ts";
import type { Interval, Window } from "../../../../../src/core/domain/time/window.ts";
import { times } from "../../../../support/drawn.ts";
import { searchBest } from "./exhaustive.ts";

const seed = 20_260_105;
const DATA_START = Date.parse("2026-01-05T00:00:00Z");

/** Aligned ranges from 2026 on, up to so many days long; ends fall on the hour, the day or some stride's grid. */
function alignedRange(days: number): fc.Arbitrary<Interval> {
  const grid = fc.constantFrom(HOUR_MS, DAY_MS, ...STRIDES.map((stride) => STRIDE_MS[stride]));
  return (
    fc
      .record({
        start: fc.nat({ max: 3_000 * 24 }),
        hours: fc.integer({ min: 1, max: days * 24 }),
        startGrid: grid,
        endGrid: grid,
      })
      .map(({ start, hours, startGrid, endGrid }) => {
        const from = DATA_START + start * HOUR_MS;
        const to = from + hours * HOUR_MS;
        return { start: Math.floor(from / startGrid) * startGrid, end: Math.ceil(to / endGrid) * endGrid };
      })
      // Rounding both ends to years would make every search a long one.
      .filter(({ start, end }) => end - start <= days * DAY_MS)
  );
}

function inHours({ start, end }: Interval): [number, number] {
  return [start / HOUR_MS, end / HOUR_MS];
}

describe("planWindows against the exhaustive search over every cut on the hour", () => {
  test.each<[Stride, number, number]>([
    ["hour", 8, 300],
    ["day", 130, 60],
    ["week", 330, 40],
    ["month", 1_000, 20],
    ["year", 2_400, 12],
  ])("%s: ranges up to %i days", (stride, days, numRuns) => {
    fc.assert(
      fc.property(alignedRange(days), (range) => {
        const plan = planWindows(range, stride).map((window) => {
          const [start, end] = inHours(window);
          return { start, end, stride: window.stride };
        });
        expect(plan).toEqual(searchBest(...inHours(range), stride));
      }),
      { seed, numRuns: times(numRuns) },
    );
  });
});

describe("every plan", () => {
  const runs = { seed, numRuns: 1_000 };
  const wanted = fc.constantFrom(...STRIDES);

  test("tiles its range: no gap, no overlap, no more and no less", () => {
    fc.assert(
      fc.property(alignedRange(4_000), wanted, (range, stride) => {
        const plan = planWindows(range, stride);
        const starts = plan.map((window) => window.start);
        const ends = plan.map((window) => window.end);
        expect([...starts, range.end]).toEqual([range.start, ...ends]);
        expect(plan.filter(({ start, end }) => start >= end)).toEqual([]);
      }),
      runs,
    );
  });

  test("has windows on their stride's grid, in their tier, of a length that gets the stride, and never coarser", () => {
    fc.assert(
      fc.property(alignedRange(4_000), wanted, (range, stride) => {
        const sound = (window: Window) => {
          const { min, max } = TIER_BUCKETS[window.stride];
          const size = STRIDE_MS[window.stride];
          const buckets = (window.end - window.start) / size;
          return (
            window.start % size === 0 &&
            window.end % size === 0 &&
            min <= buckets &&
            buckets <= max &&
            strideOfRange(window.end - window.start) === window.stride &&
            STRIDES.indexOf(window.stride) <= STRIDES.indexOf(stride)
          );
        };
        expect(planWindows(range, stride).filter((window) => !sound(window))).toEqual([]);
      }),
      runs,
    );
  });

  test("needs no hours for a stride of a day or more", () => {
    const coarse = fc.constantFrom<Stride>("day", "week", "month", "year");
    fc.assert(
      fc.property(alignedRange(4_000), coarse, (range, stride) => {
        const aligned = alignRange(range, stride) ?? range;
        expect(planWindows(aligned, stride).some((window) => window.stride === "hour")).toBe(false);
      }),
      runs,
    );
  });
});

describe("alignRange", () => {
  const instant = fc.integer({
    min: Date.parse("2024-01-01T00:00:00Z"),
    max: Date.parse("2033-01-01T00:00:00Z"),
  });

  test("widens each end by less than the grid, leaves out what is before the data start, and is done at once", () => {
    fc.assert(
      fc.property(
        instant,
        fc.integer({ min: 1, max: 900 * DAY_MS }),
        fc.constantFrom(...STRIDES),
        fc.option(instant, { nil: undefined }),
        (start, length, stride, notBefore) => {
          const grid = stride === "hour" ? HOUR_MS : DAY_MS;
          const end = start + length;
          const dataStart = notBefore === undefined ? undefined : notBefore - (notBefore % DAY_MS);
          const aligned = alignRange({ start, end }, stride, notBefore);
          if (aligned === undefined) {
            expect(dataStart).toBeGreaterThanOrEqual(end);
            return;
          }
          expect(aligned.start % grid).toBe(0);
          expect(aligned.end % grid).toBe(0);
          expect(aligned.end - end).toBeGreaterThanOrEqual(0);
          expect(aligned.end - end).toBeLessThan(grid);
          if (dataStart !== undefined && dataStart > start) {
            expect(aligned.start).toBe(dataStart);
          } else {
            expect(start - aligned.start).toBeGreaterThanOrEqual(0);
            expect(start - aligned.start).toBeLessThan(grid);
          }
          expect(alignRange(aligned, stride, notBefore)).toEqual(aligned);
        },
      ),
      { seed, numRuns: 3_000 },
    );
  });

  const range = (from: string, to: string) => ({ start: Date.parse(from), end: Date.parse(to) });
  test("keeps an empty or reversed range empty, on the grid and off it", () => {
    expect(alignRange(range("2026-03-08", "2026-03-08"), "day")).toBeUndefined();
    expect(alignRange(range("2026-03-08T05:30Z", "2026-03-08T05:30Z"), "hour")).toBeUndefined();
    expect(alignRange(range("2026-03-09", "2026-03-08"), "day")).toBeUndefined();
  });
});

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
