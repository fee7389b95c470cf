import { expect, test } from "vitest";
import { DAY_MS, type Stride } from "../../../../../src/core/domain/time/stride.ts";
import type { Interval } from "../../../../../src/core/domain/time/window.ts";
import { clipToFuture, keptDemand, routineDemand } from "../../../../../src/core/pipeline/sync/plan.ts";
import type { ServerCapability } from "../../../../../src/core/store/catalog/server-capabilities.ts";

const NOW = Date.parse("2026-03-10T05:20:00Z");
const DATA_START = Date.parse("2026-03-01T00:00:00Z");

const source = (capabilities: readonly ServerCapability[] = [], dataStart = DATA_START) => ({
  capabilities: new Set(capabilities),
  strideRetries: new Set<never>(),
  dataStart,
  meters: new Map([["traces", dataStart] as const]),
  settings: { hourlyForMs: 2 * DAY_MS, meters: [] },
});
const instant = (ms: number) => new Date(ms).toISOString().slice(0, 13);
const shown = (wanted: readonly { stride: Stride; range: Interval }[]) =>
  wanted.map(({ stride, range }) => `${stride} ${instant(range.start)} ${instant(range.end)}`);

const DAYS = "day 2026-03-01T00 2026-03-11T00";
const HOURS = "hour 2026-03-08T00 2026-03-10T06";

test("a sync keeps days for all time and hours for as long as is set, with the day and the hour under way", () => {
  expect(shown(keptDemand(source(), NOW))).toEqual([DAYS, HOURS]);
  expect(shown(routineDemand(source(), NOW))).toEqual([DAYS, HOURS]);
});

test("on the hour there is no hour under way, and at midnight no day", () => {
  const midnight = Date.parse("2026-03-10T00:00:00Z");
  expect(shown(keptDemand(source(), midnight))).toEqual([
    "day 2026-03-01T00 2026-03-10T00",
    "hour 2026-03-08T00 2026-03-10T00",
  ]);
});

test("on its first day, a source whose server refuses the future has no day yet", () => {
  const first = source(["no_future_end"], Date.parse("2026-03-10T00:00:00Z"));
  expect(shown(keptDemand(first, NOW))).toEqual(["hour 2026-03-08T00 2026-03-10T05"]);
});

test("a stride that the server does not support is kept, but not asked for", () => {
  expect(shown(keptDemand(source(["no_hour"]), NOW))).toEqual([DAYS, HOURS]);
  expect(shown(routineDemand(source(["no_hour"]), NOW))).toEqual([DAYS]);
  expect(shown(routineDemand(source(["no_day"]), NOW))).toEqual([HOURS]);
});

test("a requested range ends with the hour or day under way, or with the last whole one", () => {
  const clipped = (stride: Stride, from: string, to: string, capabilities: ServerCapability[] = []) => {
    const range = { start: Date.parse(from), end: Date.parse(to) };
    const part = clipToFuture(source(capabilities), range, stride, NOW);
    return part && `${instant(part.start)} ${instant(part.end)}`;
  };
  const [PAST, FUTURE] = ["2026-03-02T00:00Z", "2026-04-01T00:00Z"];
  expect(clipped("day", PAST, "2026-03-05T00:00Z")).toBe("2026-03-02T00 2026-03-05T00");
  expect(clipped("day", PAST, FUTURE)).toBe("2026-03-02T00 2026-03-11T00");
  expect(clipped("week", PAST, FUTURE)).toBe("2026-03-02T00 2026-03-11T00");
  expect(clipped("hour", PAST, FUTURE)).toBe("2026-03-02T00 2026-03-10T06");
  expect(clipped("hour", PAST, FUTURE, ["no_future_end"])).toBe("2026-03-02T00 2026-03-10T05");
  expect(clipped("day", PAST, FUTURE, ["no_future_end"])).toBe("2026-03-02T00 2026-03-10T00");
  expect(clipped("day", "2026-03-12T00:00Z", FUTURE)).toBeUndefined();
});
