import fc from "fast-check";
import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../../../../src/core/domain/time/stride.ts";
import type { Interval } from "../../../../../src/core/domain/time/window.ts";
import { notCompared } from "../../../../../src/core/pipeline/proof/reconcile-parts.ts";
import type { ScopeState } from "../../../../../src/core/store/catalog/scopes.ts";

const START = Date.UTC(2026, 0, 5);
const DAYS = 8;

const time = (unitMs: number) => {
  const units = (DAYS * DAY_MS) / unitMs;
  return fc
    .tuple(fc.nat({ max: units }), fc.nat({ max: units }))
    .map(([start, length]) => ({ start: START + start * unitMs, end: START + (start + length) * unitMs }));
};
const list = (unitMs: number) => fc.array(time(unitMs), { maxLength: 3 });
const isIn = (parts: readonly Interval[], at: number) =>
  parts.some(({ start, end }) => start <= at && at < end);

const drawn = fc.constantFrom("day" as const, "hour" as const, "week" as const).chain((stride) => {
  const unit = stride === "hour" ? HOUR_MS : DAY_MS;
  return fc.record({
    stride: fc.constant(stride),
    unit: fc.constant(unit),
    requested: list(unit),
    final: list(unit),
    provisional: list(unit),
    failed: list(unit),
    now: fc.nat({ max: DAYS * 48 }).map((half) => START + half * 30 * 60_000),
    settleAfterMs: fc.constantFrom(0, 5 * HOUR_MS, DAY_MS, 3 * DAY_MS),
    hourlyForMs: fc.constantFrom(HOUR_MS, 2 * DAY_MS),
    dataStart: fc.constantFrom(START, START + DAY_MS),
    isAvailable: fc.boolean(),
    isKept: fc.boolean(),
  });
});

test("each ended day or hour that was asked for and is not final is counted once, by what is known of it", () => {
  fc.assert(
    fc.property(drawn, fc.integer({ min: 1, max: 2 }), (given, scopes) => {
      const { stride, unit, requested, final, provisional, failed, now, dataStart, isAvailable, isKept } =
        given;
      const state = {
        coverage: [
          ...final.map((part) => ({ ...part, final: true })),
          ...provisional.map((part) => ({ ...part, final: false })),
        ],
        failures: failed,
      } as unknown as ScopeState;
      const counts = notCompared(
        { settings: given as never, dataStart },
        Array.from({ length: scopes }, () => state),
        { stride, partsOf: () => requested, now, isAvailable, isKept },
      );
      const expected = { provisional: 0, failed: 0, missing: 0, notKept: 0, notAvailable: 0 };
      const midnight = (at: number) => Math.floor(at / DAY_MS) * DAY_MS;
      for (let at = dataStart; at + unit <= now; at += unit) {
        if (!isIn(requested, at) || isIn(final, at)) continue;
        const isYoung = at >= midnight(now - given.settleAfterMs);
        const isOld = stride === "hour" && at < midnight(now - given.hourlyForMs);
        if (isIn(provisional, at)) expected.provisional += scopes;
        else if (isIn(failed, at)) expected.failed += scopes;
        else if (!isKept || isOld) expected.notKept += scopes;
        else if (!isAvailable) expected.notAvailable += scopes;
        else if (isYoung) expected.provisional += scopes;
        else expected.missing += scopes;
      }
      expect(counts).toEqual(expected);
    }),
    { seed: 20_260_105, numRuns: 3_000 },
  );
});
