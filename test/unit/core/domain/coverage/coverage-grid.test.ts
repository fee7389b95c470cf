import { expect, test } from "vitest";
import { hasGapIn, type Parts } from "../../../../../src/core/domain/coverage/coverage-grid.ts";
import { DAY_MS } from "../../../../../src/core/domain/time/stride.ts";

test.each([
  ["failed", true],
  ["missing", true],
  ["unverified", true],
  ["not_available", false],
  ["provisional", false],
  ["final", false],
] as const)("time that is %s has a gap: %s", (kind, hasGap) => {
  const start = Date.UTC(2026, 0, 5);
  const [day, next] = [0, 1].map((n) => ({ start: start + n * DAY_MS, end: start + (n + 1) * DAY_MS }));
  if (day === undefined || next === undefined) throw new Error("no days");
  const none = { failed: [], missing: [], unverified: [], not_available: [], provisional: [], final: [] };
  const parts: Parts = { ...none, reconciled: [], matched: [], loaded: [], traced: [], [kind]: [day] };
  expect([hasGapIn(parts, day), hasGapIn(parts, next)]).toEqual([hasGap, false]);
});
