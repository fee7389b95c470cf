import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  intersect,
  normalize,
  spanOf,
  subtract,
  totalMs,
  union,
} from "../../../../../src/core/domain/time/intervals.ts";
import type { Interval } from "../../../../../src/core/domain/time/window.ts";

const INSTANTS = 24;

function bits(intervals: readonly Interval[]): boolean[] {
  return Array.from({ length: INSTANTS }, (_, at) =>
    intervals.some(({ start, end }) => start <= at && at < end),
  );
}

function fromBits(set: readonly boolean[]): Interval[] {
  const intervals: Interval[] = [];
  for (let at = 0; at < set.length; at++) {
    if (!set[at] || set[at - 1]) continue;
    let end = at;
    while (set[end]) end++;
    intervals.push({ start: at, end });
  }
  return intervals;
}

const list = fc.array(fc.record({ start: fc.nat({ max: INSTANTS }), end: fc.nat({ max: INSTANTS }) }), {
  maxLength: 8,
});

function both(a: readonly Interval[], b: readonly Interval[], keep: (inA: boolean, inB: boolean) => boolean) {
  const other = bits(b);
  return fromBits(bits(a).map((inA, at) => keep(inA, other[at] ?? false)));
}

const runs = { seed: 20_260_105, numRuns: 3_000 };

describe("interval sets against a bitset", () => {
  test("normalize", () => {
    fc.assert(
      fc.property(list, (a) => {
        expect(normalize(a)).toEqual(fromBits(bits(a)));
      }),
      runs,
    );
  });

  test.each([
    ["union", union, (x: boolean, y: boolean) => x || y],
    ["subtract", subtract, (x: boolean, y: boolean) => x && !y],
    ["intersect", intersect, (x: boolean, y: boolean) => x && y],
  ])("%s", (_, of, keep) => {
    fc.assert(
      fc.property(list, list, (a, b) => {
        expect(of(a, b)).toEqual(both(a, b, keep));
      }),
      runs,
    );
  });

  test("totalMs counts an instant once", () => {
    fc.assert(
      fc.property(list, (a) => {
        expect(totalMs(a)).toBe(bits(a).filter(Boolean).length);
      }),
      runs,
    );
  });
});

describe("interval sets, by example", () => {
  test("the arguments stay as they were", () => {
    const a = Object.freeze([Object.freeze(span(5, 9)), Object.freeze(span(0, 6))]);
    expect(union(a, a)).toEqual([span(0, 9)]);
    expect(subtract(a, [span(2, 3)])).toEqual([span(0, 2), span(3, 9)]);
    expect(a).toEqual([span(5, 9), span(0, 6)]);
  });
});

function span(start: number, end: number): Interval {
  return { start, end };
}

test("the span of a set is from its first instant to its last, and empty for an empty set", () => {
  const set = [
    { start: 30, end: 40 },
    { start: 5, end: 5 },
    { start: 50, end: 60 },
    { start: 10, end: 20 },
  ];
  expect(spanOf(set)).toEqual({ start: 10, end: 60 });
  expect(spanOf([{ start: 5, end: 5 }])).toEqual({ start: 0, end: 0 });
});
