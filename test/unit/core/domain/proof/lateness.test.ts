import { expect, test } from "vitest";
import {
  judgeFinality,
  type LatenessClass,
  tierSettleAfterMs,
} from "../../../../../src/core/domain/proof/lateness.ts";
import { DAY_MS } from "../../../../../src/core/domain/time/stride.ts";

const late = (ageHours: number, tracesMoved: number, wasFinal = false, sinceDays = 80): LatenessClass => ({
  ageHours,
  wasFinal,
  changes: 10,
  tracesMoved,
  sinceDays,
});

test.each([
  ["three days are enough for what comes within two", [late(1, 900), late(48, 100)], 3, "enough", 2],
  ["a thousandth may come later", [late(1, 500), late(24, 499), late(744, 1, true)], 3, "enough", 1],
  ["more than that may not", [late(1, 500), late(24, 498), late(744, 2, true)], 3, "raise", 31],
  ["waiting for weeks where a day does it", [late(1, 900), late(24, 100)], 14, "lower", 1],
  ["as long as what comes late needs", [late(1, 900), late(72, 100)], 3, "enough", 3],
  ["in any order of the classes", [late(48, 499), late(1, 501)], 3, "enough", 2],
  ["at the border of three days", [late(1, 900), late(24, 100)], 3, "enough", 1],
  ["and above it", [late(1, 900), late(24, 100)], 3.5, "lower", 1],
])("%s", (_, classes, settleDays, verdict, adviseDays) => {
  expect(judgeFinality(classes, settleDays * DAY_MS)).toMatchObject({ verdict, adviseDays });
});

test("few changes give no advice, and none divides by zero", () => {
  expect(judgeFinality([late(24, 5)], 3 * DAY_MS)).toMatchObject({ verdict: "unknown", changes: 10 });
  expect(judgeFinality([], DAY_MS)).toMatchObject({ verdict: "unknown", changes: 0, finalChanges: 0 });
});

test("changes of final counts are counted", () => {
  expect(judgeFinality([late(1, 1000), late(744, 1, true)], 3 * DAY_MS).finalChanges).toBe(10);
});

test.each([
  ["nothing was seen: as long as a trace can change its tier", [], 3, 15],
  ["every change within two days: the setting", [late(1, 900), late(48, 100)], 3, 3],
  ["one trace after six days: seven", [late(1, 900_000), late(168, 1)], 3, 7],
  ["a final count that changed counts too", [late(1, 900), late(120, 1, true)], 3, 5],
  ["later than a trace can change its tier", [late(1, 900), late(744, 1)], 3, 15],
  ["too few changes", [late(24, 5)], 3, 15],
  ["not watched for long", [late(1, 900, false, 29), late(48, 100, false, 3)], 3, 15],
  ["watched since one of them", [late(1, 900, false, 30), late(96, 100, false, 3)], 3, 4],
  ["a longer setting", [late(1, 900), late(48, 100)], 20, 20],
  ["a longer setting, and nothing seen", [], 20, 20],
])("a tier settles: %s", (_, classes, settleDays, days) => {
  expect(tierSettleAfterMs(classes, settleDays * DAY_MS)).toBe(days * DAY_MS);
});
