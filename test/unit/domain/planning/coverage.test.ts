import { describe, expect, test } from "vitest";
import { loadedIntervalsOf } from "../../../../src/domain/coverage/finality.ts";
import { DAY_MS, HOUR_MS, STRIDE_MS, type Stride } from "../../../../src/domain/time/stride.ts";

const WEEK0 = Math.ceil(Date.UTC(2026, 0, 5) / STRIDE_MS.week) * STRIDE_MS.week;
const day = (n: number) => WEEK0 + n * DAY_MS;
const days = (start: number, end: number) => ({ start: day(start), end: day(end) });

/** What a fetch in the middle of the tenth day says of a window, where three days settle. */
const loaded = (
  start: number,
  end: number,
  stride: Stride = "day",
  before: { start: number; end: number }[] = [],
) =>
  loadedIntervalsOf(
    { ...days(start, end), stride },
    { fetchNumber: 7, fetchedAt: day(10) + 12 * HOUR_MS },
    { settleAfterMs: 3 * DAY_MS, finalBefore: before },
  ).map((part) => {
    expect(part).toMatchObject({ fetchNumber: 7, fetchedAt: day(10) + 12 * HOUR_MS });
    return `${(part.start - WEEK0) / DAY_MS} ${(part.end - WEEK0) / DAY_MS} ${part.final ? "final" : "provisional"}`;
  });

describe("the loaded intervals of a window", () => {
  test("are final up to the last whole UTC day that ended long enough ago", () => {
    expect(loaded(0, 10)).toEqual(["0 7 final", "7 10 provisional"]);
    expect(loaded(0, 7)).toEqual(["0 7 final"]);
    expect(loaded(7, 10)).toEqual(["7 10 provisional"]);
    expect(loaded(6, 8, "hour")).toEqual(["6 7 final", "7 8 provisional"]);
  });

  test("settle by whole buckets", () => {
    expect(loaded(-35, 14, "week")).toEqual(["-35 7 final", "7 14 provisional"]);
    expect(loaded(-28, 21, "week", []).at(-1)).toEqual("7 21 provisional");
  });

  test("stay final where they were, and nowhere outside of the window", () => {
    expect(loaded(0, 10, "day", [days(8, 9), days(20, 30), days(-9, -8)])).toEqual([
      "0 7 final",
      "8 9 final",
      "7 8 provisional",
      "9 10 provisional",
    ]);
  });
});
