import { expect, test } from "vitest";
import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import { type OpenDay, stepsOf } from "../../../../src/features/close/open-days.ts";

const month = { name: "2026-03", start: "2026-03-01", end: "2026-04-01" };
const OPEN = {
  day: Date.parse(month.start),
  meter: "traces",
  groupBy: "project",
  workspaceId: "a",
  access: "read",
} as const;

test.each([
  [["missing"], ["load", "reconcile"]],
  [["failed"], ["load", "reconcile", "accept"]],
  [["provisional"], ["wait", "reconcile"]],
  [["not_reconciled"], ["reconcile"]],
  [["open"], ["repair"]],
  [
    ["open", "missing", "not_reconciled"],
    ["load", "repair"],
  ],
  [["platform_disagrees"], ["accept"]],
  [["total_differs"], ["accept"]],
  [["provider_differs"], ["accept"]],
  [["not_available"], ["none", "accept"]],
  [[], []],
] as const)("against %j the steps are %j", (reasons, kinds) => {
  const open = reasons.map((reason): OpenDay => ({ ...OPEN, reason }));
  const steps = stepsOf(open, { month, digests: ["d"], settleAfterMs: 3 * DAY_MS, hasRedis: true });
  expect(steps.map(({ kind }) => kind)).toEqual(kinds);
});
