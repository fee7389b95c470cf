import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  cellsIn,
  countsOf,
  gapsOf,
  hasGapIn,
  type Kind,
  type Parts,
} from "../../../../src/domain/coverage/coverage-grid.ts";
import { normalize } from "../../../../src/domain/time/intervals.ts";
import { DAY_MS } from "../../../../src/domain/time/stride.ts";
import type { Interval } from "../../../../src/domain/time/window.ts";

/** The grid's time is compared with a model that looks at each day, or each hour, by itself. */

const FIRST = Date.UTC(2026, 0, 5);
const DAYS = 6;
const runs = { seed: 20_260_105, numRuns: 1_000 };

const isIn = (parts: readonly Interval[], at: number) =>
  parts.some(({ start, end }) => start <= at && at < end);

/** Instants of the days (or hours) from a day before the first to a day after the last. */
const unitsFrom = (unitMs: number) =>
  Array.from({ length: ((DAYS + 2) * DAY_MS) / unitMs }, (_, nth) => FIRST - DAY_MS + nth * unitMs);

const time = (unitMs: number): fc.Arbitrary<Interval[]> => {
  const units = (DAYS * DAY_MS) / unitMs;
  return fc.array(
    fc.tuple(fc.nat({ max: units }), fc.nat({ max: units })).map(([start, length]) => ({
      start: FIRST + start * unitMs,
      end: FIRST + Math.min(units, start + length) * unitMs,
    })),
    { maxLength: 3 },
  );
};

const KINDS: readonly Kind[] = ["not_available", "failed", "missing", "unverified", "provisional", "final"];

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

describe("counts", () => {
  /** Days of a cell by kind; the rest of its time is missing. */
  const partsWith = (given: Partial<Parts>): Parts => ({ ...NONE, ...given });
  const columns = [0, 2, 3].map((day, nth, all) => ({
    start: FIRST + day * DAY_MS,
    end: FIRST + (all[nth + 1] ?? DAYS) * DAY_MS,
  }));

  test("of columns are those of each unit by itself, of all cells together", () => {
    const one = time(DAY_MS);
    const parts = fc
      .record({
        final: one,
        provisional: one,
        failed: one,
        unverified: one,
        missing: one,
        reconciled: one,
        matched: one,
      })
      .map(partsWith);
    fc.assert(
      fc.property(fc.array(parts, { maxLength: 3 }), (drawn) => {
        const all = drawn.map(
          (one) =>
            Object.fromEntries(
              Object.entries(one).map(([name, list]) => [name, normalize(list)]),
            ) as unknown as Parts,
        );
        // Of some columns only: units before, between and after them count nowhere.
        for (const some of [
          columns,
          columns.slice(1),
          columns.slice(0, 2),
          [columns[0], columns[2]] as Interval[],
        ]) {
          const counts = countsOf(all, some, DAY_MS);
          const naive = some.map((column) =>
            Object.fromEntries(
              [...KINDS, "reconciled" as const, "matched" as const].map((name) => [
                name,
                unitsFrom(DAY_MS)
                  .filter((at) => isIn([column], at))
                  .reduce((count, at) => count + all.filter((one) => isIn(one[name], at)).length, 0),
              ]),
            ),
          );
          expect(counts).toEqual(naive);
        }
      }),
      runs,
    );
  });
});

describe("gaps", () => {
  const day = (from: number, to = from + 1) => [{ start: FIRST + from * DAY_MS, end: FIRST + to * DAY_MS }];
  const cell = (given: Partial<Parts>) => ({
    parts: { ...NONE, ...given },
  });

  test("are what is missing, failed or unverified, and nothing else", () => {
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
});
