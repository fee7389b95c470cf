import { describe, expect, test } from "vitest";
import { monthAt, monthBefore, monthNamed } from "../../../../src/domain/months/month.ts";
import { type AskedClose, type OpenDay, stepsOf } from "../../../../src/domain/months/open-days.ts";
import { DAY_MS } from "../../../../src/domain/time/stride.ts";

const month = { name: "2026-03", start: "2026-03-01", end: "2026-04-01" };
const day = (nth: number) => Date.parse(month.start) + (nth - 1) * DAY_MS;
const open = (given: Partial<OpenDay> = {}): OpenDay => ({
  day: day(1),
  meter: "traces",
  groupBy: "project",
  workspaceId: "a",
  access: "read",
  reason: "missing",
  ...given,
});
const LOAD = "usage-etl backfill --from 2026-03-01 --to 2026-04-01";
const stepsFor = (days: readonly OpenDay[], asked: Partial<AskedClose> = {}) =>
  stepsOf(days, { month, without: [], settleAfterMs: 3 * DAY_MS, hasRedis: true, ...asked });
const kindsFor = (...reasons: OpenDay["reason"][]) =>
  stepsFor(reasons.map((reason) => open({ reason }))).map(({ kind }) => kind);

describe("the steps", () => {
  test("wait for the last provisional day to become final", () => {
    const days = [
      open({ reason: "provisional", day: day(30) }),
      open({ reason: "provisional", day: day(7) }),
      // Loading does not help here, so nobody waits for it.
      open({ reason: "provisional", day: day(31), access: "unlisted" }),
      open({ day: day(31) }),
    ];
    expect(stepsFor(days).find(({ kind }) => kind === "wait")).toEqual({
      kind: "wait",
      text: `Wait until 2026-04-03 (USAGE_SETTLE_AFTER), and load again what is provisional: \`${LOAD}\``,
      commands: [LOAD],
    });
  });

  test.each([
    [["missing"], ["load", "reconcile"]],
    [["failed"], ["load", "reconcile"]],
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
    [["not_available"], ["none"]],
    [[], []],
  ] as const)("against %j are %j", (reasons, kinds) => expect(kindsFor(...reasons)).toEqual(kinds));
});

test("a month has its first day and that of the next, over the year's end too", () => {
  expect(monthNamed("2026-03")).toEqual(month);
  expect(monthNamed("2026-12")).toEqual({ name: "2026-12", start: "2026-12-01", end: "2027-01-01" });
  for (const text of ["", "2026", "2026-00", "2026-13", "2026-1", "2026-03-01", " 2026-03", "12026-03"]) {
    expect(monthNamed(text)).toBeUndefined();
  }
  expect(monthAt(Date.parse(month.end) - 1)).toEqual(month);
  expect(monthAt(Date.parse(month.end)).name).toBe("2026-04");
  expect(monthBefore(monthAt(Date.parse("2026-01-15"))).name).toBe("2025-12");
});
