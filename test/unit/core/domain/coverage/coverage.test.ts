import { expect, test } from "vitest";
import { loadedIntervalsOf } from "../../../../../src/core/domain/coverage/finality.ts";
import { DAY_MS, HOUR_MS, STRIDE_MS, type Stride } from "../../../../../src/core/domain/time/stride.ts";

const WEEK0 = Math.ceil(Date.UTC(2026, 0, 5) / STRIDE_MS.week) * STRIDE_MS.week;
const day = (n: number) => WEEK0 + n * DAY_MS;
const FETCH_TOKEN = { fetchNumber: 7, fetchedAt: day(10) + 12 * HOUR_MS };

const loaded = (start: number, end: number, stride: Stride) =>
  loadedIntervalsOf({ start: day(start), end: day(end), stride }, FETCH_TOKEN, {
    settleAfterMs: 3 * DAY_MS,
    finalBefore: [],
  }).map((part) => {
    expect(part).toMatchObject(FETCH_TOKEN);
    const [from, to] = [part.start, part.end].map((at) => (at - WEEK0) / DAY_MS);
    return `${from} ${to} ${part.final ? "final" : "provisional"}`;
  });

test("a window settles by whole buckets", () => {
  expect(loaded(-35, 14, "week")).toEqual(["-35 7 final", "7 14 provisional"]);
  expect(loaded(-28, 21, "week").at(-1)).toBe("7 21 provisional");
});
