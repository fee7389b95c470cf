import { describe, expect, test } from "vitest";
import { daysText, monthAt, monthBefore, monthNamed } from "../../../../src/domain/months/month.ts";
import {
  type AskedClose,
  type OpenDay,
  openPointsOf,
  stepsOf,
} from "../../../../src/domain/months/open-days.ts";
import { describeOtherUsage } from "../../../../src/domain/months/other-usage.ts";
import { DAY_MS } from "../../../../src/domain/time/stride.ts";

const month = { name: "2026-03", start: "2026-03-01", end: "2026-04-01" };
const day = (nth: number) => Date.parse(month.start) + (nth - 1) * DAY_MS;
const open = (given: Partial<OpenDay> = {}): OpenDay => ({
  ...{
    day: day(1),
    meter: "traces",
    groupBy: "project",
    workspaceId: "a",
    access: "read",
    reason: "missing",
    ...given,
  },
});
const LOAD = "usage-etl backfill --from 2026-03-01 --to 2026-04-01";
const RECONCILE = "usage-etl reconcile --from 2026-03-01 --to 2026-04-01";
const stepsFor = (days: readonly OpenDay[], asked: Partial<AskedClose> = {}) =>
  stepsOf(days, { month, without: [], settleAfterMs: 3 * DAY_MS, hasRedis: true, ...asked });
const kindsFor = (...reasons: OpenDay["reason"][]) =>
  stepsFor(reasons.map((reason) => open({ reason }))).map(({ kind }) => kind);

test("what is open is grouped by reason and dimension, in the order in which reasons apply", () => {
  const days = [
    open({ reason: "provisional" }),
    open({ day: day(2), workspaceId: "b" }),
    open({ day: day(3), groupBy: "user" }),
    open({ day: day(4) }),
    open({ day: day(5), workspaceId: "b" }),
  ];
  expect(openPointsOf(days)).toMatchObject([
    { reason: "missing", groupBy: "project", days: 3, first: day(2), last: day(5), workspaceIds: ["b", "a"] },
    { reason: "missing", groupBy: "user", days: 1, first: day(3), last: day(3), workspaceIds: ["a"] },
    { reason: "provisional", groupBy: "project", days: 1, first: day(1), last: day(1), workspaceIds: ["a"] },
  ]);
  const others = [open(), open({ meter: "longlived" })];
  expect(openPointsOf(others).map(({ meter }) => meter)).toEqual(["traces", "longlived"]);
});

describe("the steps", () => {
  test("load before they reconcile, and name the command without Redis as well", () => {
    expect(stepsFor([open()])).toEqual([
      { kind: "load", text: `Load what is missing: \`${LOAD}\``, commands: [LOAD] },
      { kind: "reconcile", text: `Reconcile with the export: \`${RECONCILE}\``, commands: [RECONCILE] },
    ]);
    const close = "usage-etl close 2026-03 --without-costs --without b";
    expect(stepsFor([open()], { lacksPrice: true, without: ["b"] }).at(-1)).toEqual({
      kind: "prices",
      text: `No price is valid in 2026-03: import prices with \`usage-etl prices import FILE\`, or close without costs: \`${close}\``,
      commands: [close],
    });
    expect(stepsFor([open()], { hasRedis: false })[0]?.commands).toEqual([`${LOAD} --inline`]);
    const [failed] = stepsFor([open(), open({ reason: "failed" })]);
    expect(failed).toEqual({
      ...{ kind: "load", commands: [LOAD] },
      text: `Load what failed: \`${LOAD}\`. \`usage-etl status\` shows why it failed.`,
    });
  });

  test("wait for a tier until a trace cannot change it any more", () => {
    const step = stepsFor([open({ reason: "provisional", day: day(30), meter: "longlived" })])[0];
    expect(step).toMatchObject({ kind: "wait" });
    expect(step?.text).toContain(
      "Wait until 2026-04-15 at the latest, since traces may change their tier, and load again what is provisional of long-lived traces: ",
    );
  });

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

  test("repair what differs, and accept only what was looked at", () => {
    expect(stepsFor([open({ reason: "open" })])).toEqual([
      {
        kind: "repair",
        text: `Repair what differs from the export: \`${RECONCILE} --repair\``,
        commands: [`${RECONCILE} --repair`],
      },
    ]);
    const accept =
      "usage-etl close 2026-03 --accept-disagreements --without x --without y --expect d --expect e";
    const asked = { without: ["x", "y"], digests: ["d", "e"] };
    expect(stepsFor([open({ reason: "total_differs" })], asked)).toEqual([
      {
        kind: "accept",
        text: `Ask the platform about what differs there, or accept it: \`${accept}\``,
        commands: [accept],
      },
    ]);
    expect(stepsFor([open({ reason: "total_differs" })])[0]?.commands).toEqual([
      "usage-etl close 2026-03 --accept-disagreements",
    ]);
    expect(stepsFor([open({ reason: "not_available" })])).toEqual([
      {
        kind: "none",
        text: "The platform does not answer in days, so the month cannot be closed.",
        commands: [],
      },
    ]);
  });

  test("give each workspace that no sync reads one way out, or two", () => {
    const days = [
      open({ workspaceId: "u", access: "unlisted" }),
      open({ workspaceId: "u", access: "unlisted", day: day(2) }),
      open({ workspaceId: "n", access: "not_configured", reason: "provisional" }),
      open({ workspaceId: "r", reason: "unverified" }),
    ];
    const leaveOut = (id: string) => `usage-etl close 2026-03 --without ${id} --without x`;
    const step = (workspaceId: string, said: string) => ({
      ...{ kind: "workspace", workspaceId, commands: [LOAD, leaveOut(workspaceId)] },
      text: `Workspace ${workspaceId} ${said} and load it: \`${LOAD}\`. Or leave it out: \`${leaveOut(workspaceId)}\``,
    });
    expect(stepsFor(days, { without: ["x"] })).toEqual([
      step("u", "left the platform's listing. Give the key access to it again"),
      step("n", "is not configured any more. Name it in USAGE_WORKSPACE_IDS again"),
      step("r", "was not named in any answer lately. Give the key access to it"),
    ]);
  });
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

test("whole months are called by their names, other days by the first and the last", () => {
  expect(daysText({ from: "2026-10-01", to: "2026-11-01" })).toBe("October 2026");
  expect(daysText({ from: "2025-12-01", to: "2026-03-01" })).toBe("December 2025 to February 2026");
  expect(daysText({ from: "2026-10-01", to: "2026-10-31" })).toBe("2026-10-01 to 2026-10-30");
  expect(daysText({ from: "2026-10-31", to: "2026-11-01" })).toBe("2026-10-31");
});

test("other usage is said with what the close does with it, and what differs", () => {
  const known = { finalDays: 0, reconciledDays: 0, differences: 0, evidence: null };
  expect(
    describeOtherUsage([
      { ...known, meter: "longlived", state: "checked", finalDays: 1_234, reconciledDays: 7 },
      { ...known, meter: "deployments", state: "not_wanted", reconciledDays: 2_000, differences: 1_001 },
      { ...known, meter: "shortlived", state: "not_counted", evidence: "it answers 400" },
      { ...known, meter: "sandboxes", state: "not_counted" },
    ]),
  ).toBe(
    "Long-lived traces: checked too; daily figures: 1,234 final, 7 reconciled; no difference. " +
      "Deployment usage: not checked for gaps, since it is no longer kept (USAGE_KINDS, USAGE_TIERS); daily figures: 0 final, 2,000 reconciled; 1,001 DIFFERENT. " +
      "Short-lived traces, sandbox usage: not in the close, since the server is not known to count it. " +
      "`usage-etl doctor` shows what the server answered.",
  );
});
