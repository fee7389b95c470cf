import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  isLoaded,
  type KnownTime,
  type LoadStatus,
  rangeStatus,
} from "../../../../src/domain/coverage/range-status.ts";
import { DAY_MS, HOUR_MS, STRIDES, type Stride } from "../../../../src/domain/time/stride.ts";

const seed = 20_260_105;
const DATA_START = Date.UTC(2026, 0, 5);
const DAYS = 8;

/** What is known of each hour of a scope. Days carry one state for 24 hours. */
type State = "none" | "provisional" | "final";
interface Known {
  readonly hours: readonly State[];
  readonly days: readonly State[];
  readonly failedHours: readonly boolean[];
  readonly failedDays: readonly boolean[];
}

const state = fc.constantFrom<State>("none", "provisional", "final", "final");
const knownTime: fc.Arbitrary<Known> = fc.record({
  hours: fc
    .array(fc.tuple(state, fc.integer({ min: 1, max: 60 })), { minLength: 30, maxLength: 30 })
    .map((runs) => runs.flatMap(([one, length]) => Array<State>(length).fill(one)).slice(0, DAYS * 24)),
  days: fc.array(state, { minLength: DAYS, maxLength: DAYS }),
  failedHours: fc
    .array(fc.integer({ min: 0, max: 20 }), { minLength: DAYS * 24, maxLength: DAYS * 24 })
    .map(rare),
  failedDays: fc.array(fc.integer({ min: 0, max: 6 }), { minLength: DAYS, maxLength: DAYS }).map(rare),
});

function rare(dice: readonly number[]): boolean[] {
  return dice.map((thrown) => thrown === 0);
}

function scopeOf(
  stride: Stride,
  states: readonly State[],
  failed: readonly boolean[],
  unit: number,
): KnownTime {
  const part = (i: number) => ({ start: DATA_START + i * unit, end: DATA_START + (i + 1) * unit });
  return {
    ...{ groupBy: "user", workspaceId: "w", stride },
    coverage: states.flatMap((one, i) => (one === "none" ? [] : [{ ...part(i), final: one === "final" }])),
    failures: failed.flatMap((isFailed, i) =>
      isFailed ? [{ ...part(i), state: "failed" as const, code: "server_error", retryAt: 1_000 + i }] : [],
    ),
  };
}

const scopesOf = ({ hours, days, failedHours, failedDays }: Known): KnownTime[] => [
  scopeOf("day", days, failedDays, DAY_MS),
  scopeOf("hour", hours, failedHours, HOUR_MS),
  ...STRIDES.slice(2).map((stride) => scopeOf(stride, [], [], DAY_MS)),
];

/** The status of one day, decided for that day alone. */
function expectedOf({ hours, days, failedHours, failedDays }: Known, day: number): LoadStatus {
  const ofDay = hours.slice(day * 24, day * 24 + 24);
  if (failedDays[day]) return "failed";
  if (days[day] !== "none") return days[day] as LoadStatus;
  if (ofDay.length === 24 && ofDay.every((hour) => hour === "final")) return "final";
  if (ofDay.length === 24 && ofDay.every((hour) => hour !== "none")) return "provisional";
  return failedHours.slice(day * 24, day * 24 + 24).includes(true) ? "failed" : "missing";
}

describe("the status of a requested range", () => {
  test("each whole day has the status that it has alone, and the lines add up to the range", () => {
    fc.assert(
      fc.property(knownTime, (known) => {
        const range = { start: DATA_START - 3 * DAY_MS, end: DATA_START + DAYS * DAY_MS };
        const lines = rangeStatus({
          meter: "traces",
          known: scopesOf(known),
          wanted: [{ stride: "day", range }],
          dataStart: DATA_START,
          unavailable: new Set(),
        });
        const expected = Array.from({ length: DAYS }, (_, day) => expectedOf(known, day));
        for (const status of ["final", "provisional", "failed", "missing"] as const) {
          const shown = lines.filter((line) => line.status === status);
          const buckets = shown.reduce((sum, line) => sum + line.buckets, 0);
          expect([status, buckets]).toEqual([status, expected.filter((one) => one === status).length]);
        }
        expect(lines.every(isLoaded)).toBe(expected.every((status) => isLoaded({ status })));
      }),
      { seed, numRuns: 400 },
    );
  });

  test("a stride that the server lacks is not available where nothing is loaded", () => {
    const known = scopesOf({
      hours: Array<State>(24).fill("final"),
      days: ["none", "none", "final"],
      failedHours: [],
      failedDays: [true, true, true],
    });
    const wanted = [{ stride: "day" as const, range: { start: DATA_START, end: DATA_START + 3 * DAY_MS } }];
    const lines = rangeStatus({
      meter: "traces",
      known,
      wanted,
      dataStart: DATA_START,
      unavailable: new Set(["day"]),
    });
    expect(lines.map(({ status, buckets, retryAt }) => [status, buckets, retryAt])).toEqual([
      ["not_available", 1, null],
      ["failed", 2, 1_000],
    ]);
  });

  test("a line has the earliest retry and spans all of its parts", () => {
    const known = scopesOf({
      hours: [],
      days: ["final", "final", "final", "none"],
      failedHours: [],
      failedDays: [false, true, false, true],
    });
    const wanted = [{ stride: "day" as const, range: { start: DATA_START, end: DATA_START + 4 * DAY_MS } }];
    expect(
      rangeStatus({ meter: "traces", known, wanted, dataStart: DATA_START, unavailable: new Set() }),
    ).toEqual([
      {
        ...{
          meter: "traces",
          groupBy: "user",
          stride: "day",
          status: "failed",
          code: "server_error",
          buckets: 2,
          retryAt: 1_001,
        },
        ...{ first: DATA_START + DAY_MS, end: DATA_START + 4 * DAY_MS },
      },
      {
        ...{
          meter: "traces",
          groupBy: "user",
          stride: "day",
          status: "final",
          code: null,
          buckets: 2,
          retryAt: null,
        },
        ...{ first: DATA_START, end: DATA_START + 3 * DAY_MS },
      },
    ]);
  });

  test("hours are counted as hours", () => {
    const hour = (n: number) => DATA_START + n * HOUR_MS;
    const known: KnownTime[] = [
      {
        ...{ groupBy: "user", workspaceId: "w", stride: "hour" },
        coverage: [{ start: hour(0), end: hour(5), final: true }],
        failures: [{ start: hour(5), end: hour(7), state: "unverified", code: "no_access", retryAt: 9 }],
      },
    ];
    const wanted = [{ stride: "hour" as const, range: { start: hour(0), end: hour(12) } }];
    const lines = rangeStatus({
      meter: "traces",
      known,
      wanted,
      dataStart: DATA_START,
      unavailable: new Set(),
    });
    expect(
      lines.map(({ status, buckets, first, end, retryAt }) => [status, buckets, first, end, retryAt]),
    ).toEqual([
      ["unverified", 2, hour(5), hour(7), 9],
      ["final", 5, hour(0), hour(5), null],
      ["missing", 5, hour(7), hour(12), null],
    ]);
  });

  test("a range before the data start has no lines, and a day without scopes of finer strides is missing", () => {
    const known: KnownTime[] = [
      { groupBy: "user", workspaceId: "w", stride: "day", coverage: [], failures: [] },
    ];
    const of = (start: number) =>
      rangeStatus({
        meter: "traces",
        known,
        wanted: [{ stride: "day", range: { start: DATA_START + start, end: DATA_START + start + DAY_MS } }],
        dataStart: DATA_START,
        unavailable: new Set(),
      }).map(({ status, buckets }) => [status, buckets]);
    expect(of(-5 * DAY_MS)).toEqual([]);
    expect(of(0)).toEqual([["missing", 1]]);
  });

  test.each([
    ["final", true],
    ["provisional", true],
    ["not_available", false],
    ["failed", false],
    ["unverified", false],
    ["missing", false],
  ] as const)("a line that is %s is loaded: %s", (status, loaded) => {
    expect(isLoaded({ status })).toBe(loaded);
  });
});
