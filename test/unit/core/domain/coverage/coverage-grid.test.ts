import { expect, test } from "vitest";
import {
  cellsIn,
  gapsOf,
  hasGapIn,
  type Parts,
} from "../../../../../src/core/domain/coverage/coverage-grid.ts";
import { DAY_MS } from "../../../../../src/core/domain/time/stride.ts";
import type { Interval } from "../../../../../src/core/domain/time/window.ts";

const FIRST = Date.UTC(2026, 0, 5);

const NONE: Parts = {
  not_available: [],
  failed: [],
  missing: [],
  unverified: [],
  provisional: [],
  final: [],
  reconciled: [],
  matched: [],
  loaded: [],
  traced: [],
};

const day = (from: number, to = from + 1) => [{ start: FIRST + from * DAY_MS, end: FIRST + to * DAY_MS }];
const cell = (given: Partial<Parts>) => ({
  parts: { ...NONE, ...given },
});

test("gaps are what is missing, failed or unverified, and nothing else", () => {
  const cells = [
    cell({ failed: day(0), missing: day(1), final: day(2, 6) }),
    cell({ unverified: day(3), provisional: day(4), not_available: day(5) }),
  ];
  expect(gapsOf(cells)).toEqual([...day(0, 2), ...day(3)]);
  expect(gapsOf([])).toEqual([]);
  for (const [range, found] of [
    [day(0), [0]],
    [day(1), [0]],
    [day(2), []],
    [day(2, 4), [1]],
    [day(0, 4), [0, 1]],
    [day(4, 6), []],
  ] as const) {
    const gap = range[0] as Interval;
    expect(cellsIn(gap, cells)).toEqual(found.map((nth) => cells[nth]));
    expect(cells.map(({ parts }) => hasGapIn(parts, gap))).toEqual(
      [0, 1].map((nth) => (found as readonly number[]).includes(nth)),
    );
  }
});
