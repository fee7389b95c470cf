import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type CellTime, cellTime, daysLeft, withHours } from "../../../../src/domain/coverage/cell-time.ts";
import { cellsIn, gapsOf, hasGapIn } from "../../../../src/domain/coverage/coverage-gaps.ts";
import {
  byDay,
  countsOf,
  type Expectation,
  type Kind,
  kindOf,
  type Parts,
  partsOf,
  statusOf,
  sum,
  unitsOf,
  withoutRunning,
} from "../../../../src/domain/coverage/coverage-grid.ts";
import { normalize } from "../../../../src/domain/time/intervals.ts";
import { DAY_MS, HOUR_MS } from "../../../../src/domain/time/stride.ts";
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

/** The units with some property, as intervals in normal form. */
const timeOf = (unitMs: number, has: (at: number) => boolean) =>
  normalize(
    unitsFrom(unitMs)
      .filter(has)
      .map((start) => ({ start, end: start + unitMs })),
  );

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

const stored = (unitMs: number) =>
  fc.record({
    ...{ final: time(unitMs), provisional: time(unitMs), failed: time(unitMs), unverified: time(unitMs) },
    ...{ compared: time(unitMs), totalled: time(unitMs), differing: time(unitMs) },
  });

const expectation: fc.Arbitrary<Expectation> = fc.record({
  stride: fc.constantFrom("day" as const, "hour" as const),
  dataStart: fc.nat({ max: 2 }).map((day) => FIRST + day * DAY_MS),
  hourlyHours: fc.constantFrom(1, 24, 72),
  now: fc.nat({ max: DAYS * 24 - 1 }).map((hour) => FIRST + hour * HOUR_MS + 1),
  isUnavailable: fc.boolean(),
});

/** The kinds in the order in which they apply. */
function kindAt(cell: CellTime, given: Expectation, at: number): Kind | undefined {
  const { stride, dataStart, hourlyHours, now } = given;
  if (stride === "day" ? at < dataStart || at > now : at > now) return undefined;
  const kept = Math.max(dataStart, Math.floor((now - hourlyHours * HOUR_MS) / DAY_MS) * DAY_MS);
  const isLoaded = isIn(cell.loaded, at);
  if (stride === "hour" && at < kept && !isLoaded) return undefined;
  if (given.isUnavailable && !isLoaded) return "not_available";
  if (isIn(cell.failed, at)) return "failed";
  if (isIn(cell.unverified, at)) return "unverified";
  if (!isLoaded) return "missing";
  return isIn(cell.final, at) ? "final" : "provisional";
}

const KINDS: readonly Kind[] = ["not_available", "failed", "missing", "unverified", "provisional", "final"];

describe("the time of a cell", () => {
  test("is loaded where it is final or provisional, and proved where it is final, compared and without a difference", () => {
    fc.assert(
      fc.property(stored(DAY_MS), (given) => {
        const cell = cellTime(given);
        const among = (...lists: (readonly Interval[])[]) =>
          timeOf(DAY_MS, (at) => lists.some((list) => isIn(list, at)));
        const proved = (list: readonly Interval[]) =>
          timeOf(DAY_MS, (at) => isIn(list, at) && isIn(given.final, at) && !isIn(given.differing, at));
        expect(cell).toEqual({
          loaded: among(given.final, given.provisional),
          final: among(given.final),
          failed: among(given.failed),
          unverified: among(given.unverified),
          reconciled: proved(given.compared),
          matched: proved(given.totalled),
          daysOfHours: [],
        });
      }),
      runs,
    );
  });

  test("has a day of hours where all 24 are loaded, and nothing is known of the day itself", () => {
    fc.assert(
      fc.property(stored(DAY_MS), stored(HOUR_MS), (ofDays, ofHours) => {
        const days = cellTime(ofDays);
        const left = daysLeft(days, { start: FIRST, end: FIRST + DAYS * DAY_MS });
        const isLeft = (at: number) =>
          at >= FIRST && at < FIRST + DAYS * DAY_MS && !isIn(days.loaded, at) && !isIn(days.unverified, at);
        expect(left).toEqual(timeOf(DAY_MS, isLeft));
        const all = (at: number, ...lists: (readonly Interval[])[]) =>
          Array.from({ length: 24 }, (_, hour) => at + hour * HOUR_MS).every((hour) =>
            lists.some((list) => isIn(list, hour)),
          );
        const { final, provisional } = ofHours;
        const daysOfHours = timeOf(DAY_MS, (at) => isLeft(at) && all(at, final, provisional));
        expect(withHours(days, { left, final, provisional })).toEqual({
          ...days,
          daysOfHours,
          loaded: timeOf(DAY_MS, (at) => isIn(days.loaded, at) || isIn(daysOfHours, at)),
          final: timeOf(DAY_MS, (at) => isIn(days.final, at) || (isIn(daysOfHours, at) && all(at, final))),
        });
      }),
      runs,
    );
  });
});

describe("the parts of a cell", () => {
  test("have each expected day or hour once, as the first kind that applies", () => {
    fc.assert(
      fc.property(expectation, stored(DAY_MS), stored(HOUR_MS), (given, ofDays, ofHours) => {
        const unitMs = given.stride === "day" ? DAY_MS : HOUR_MS;
        const cell = cellTime(given.stride === "day" ? ofDays : ofHours);
        const parts = partsOf(cell, given);
        for (const kind of KINDS) {
          expect(parts[kind], kind).toEqual(timeOf(unitMs, (at) => kindAt(cell, given, at) === kind));
        }
        const isExpected = (at: number) => kindAt(cell, given, at) !== undefined;
        expect(parts.reconciled).toEqual(timeOf(unitMs, (at) => isExpected(at) && isIn(cell.reconciled, at)));
        expect(parts.matched).toEqual(timeOf(unitMs, (at) => isExpected(at) && isIn(cell.matched, at)));
      }),
      runs,
    );
  });

  test("of hours as days have the first kind of any hour, and are proved where all 24 hours are", () => {
    fc.assert(
      fc.property(expectation, stored(HOUR_MS), (drawn, ofHours) => {
        const hours = partsOf(cellTime(ofHours), { ...drawn, stride: "hour" });
        const days = byDay(hours);
        const hoursOf = (day: number) => Array.from({ length: 24 }, (_, hour) => day + hour * HOUR_MS);
        const firstKind = (day: number) =>
          KINDS.find((kind) => hoursOf(day).some((hour) => isIn(hours[kind], hour)));
        for (const kind of KINDS) {
          expect(days[kind], kind).toEqual(timeOf(DAY_MS, (day) => firstKind(day) === kind));
        }
        for (const proof of ["reconciled", "matched"] as const) {
          const isWhole = (day: number) => hoursOf(day).every((hour) => isIn(hours[proof], hour));
          expect(days[proof], proof).toEqual(timeOf(DAY_MS, isWhole));
        }
      }),
      runs,
    );
  });

  test("leave out the day or hour under way where it is missing, and nothing else", () => {
    const now = FIRST + 2 * DAY_MS + 90 * 60_000;
    const whole = [{ start: FIRST, end: FIRST + 3 * DAY_MS }];
    const parts: Parts = {
      ...{ not_available: whole, failed: whole, missing: whole, unverified: whole, provisional: whole },
      ...{ final: whole, reconciled: whole, matched: whole },
    };
    const until = (end: number) => ({ ...parts, missing: [{ start: FIRST, end }] });
    expect(withoutRunning(parts, "day", now)).toEqual(until(FIRST + 2 * DAY_MS));
    expect(withoutRunning(parts, "hour", now)).toEqual(until(FIRST + 2 * DAY_MS + HOUR_MS));
  });
});

describe("counts", () => {
  /** Days of a cell by kind; the rest of its time is missing. */
  const partsWith = (given: Partial<Parts>): Parts => ({
    ...{ not_available: [], failed: [], missing: [], unverified: [], provisional: [], final: [] },
    ...{ reconciled: [], matched: [], ...given },
  });
  const columns = [0, 2, 3].map((day, nth, all) => ({
    start: FIRST + day * DAY_MS,
    end: FIRST + (all[nth + 1] ?? DAYS) * DAY_MS,
  }));

  test("of columns are those of each unit by itself, of all cells together", () => {
    const parts = stored(DAY_MS).map((given): Parts => {
      const { final, provisional, failed, unverified, compared, totalled, differing } = given;
      const [missing, reconciled, matched] = [compared, totalled, differing];
      return partsWith({
        ...{ final, provisional, failed, unverified, missing, reconciled, matched },
      });
    });
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

  test("are of hours where a unit is an hour, and add up", () => {
    const final = [{ start: FIRST + HOUR_MS, end: FIRST + 3 * HOUR_MS }];
    const failed = [{ start: FIRST + 3 * HOUR_MS, end: FIRST + 4 * HOUR_MS }];
    const parts = partsWith({ final, failed, reconciled: final });
    const [first] = countsOf([parts, parts], columns, HOUR_MS);
    expect(first).toMatchObject({ final: 4, failed: 2, reconciled: 4, matched: 0, missing: 0 });
    if (first === undefined) return;
    expect(unitsOf(first)).toBe(6);
    expect(sum([first, first])).toMatchObject({ final: 8, failed: 4, reconciled: 8, matched: 0 });
    expect(unitsOf(sum([]))).toBe(0);
  });

  test("have the status of the first kind that any unit has", () => {
    const count = (...kinds: Kind[]) => ({
      ...sum([]),
      ...Object.fromEntries(kinds.map((kind) => [kind, 1])),
    });
    expect(KINDS.map((_, nth) => kindOf(count(...KINDS.slice(nth))))).toEqual(KINDS);
    expect(kindOf({ ...count(), reconciled: 1 })).toBeUndefined();
    expect(KINDS.map((kind) => statusOf(kind, true))).toEqual([...KINDS.slice(0, 5), "ok"]);
    expect(KINDS.map((kind) => statusOf(kind, false))).toEqual([...KINDS.slice(0, 5), "empty"]);
  });
});

describe("gaps", () => {
  const day = (from: number, to = from + 1) => [{ start: FIRST + from * DAY_MS, end: FIRST + to * DAY_MS }];
  const cell = (given: Partial<Parts>) => ({
    parts: {
      ...{ not_available: [], failed: [], missing: [], unverified: [], provisional: [], final: [] },
      ...{ reconciled: [], matched: [], ...given },
    },
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
