import { expect, test } from "vitest";
import { judgeFinality, type LatenessClass } from "../../../src/domain/proof/lateness.ts";
import { DAY_MS } from "../../../src/domain/time/stride.ts";

const late = (ageHours: number, tracesMoved: number, wasFinal = false): LatenessClass => ({
  ageHours,
  wasFinal,
  changes: 10,
  tracesMoved,
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
