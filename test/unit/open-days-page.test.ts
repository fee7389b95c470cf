import { expect, test } from "vitest";
import type { ProviderOutcome } from "../../src/domain/bill/provider.ts";
import { monthNamed } from "../../src/domain/months/month.ts";
import type { OpenDay } from "../../src/domain/months/open-days.ts";
import { openDaysList, providerBehind } from "../../src/service/web/months/open-month.ts";
import { textOf } from "../support/pages.ts";

const MONTH = monthNamed("2026-10") as NonNullable<ReturnType<typeof monthNamed>>;
const DAY: OpenDay = {
  ...{ day: Date.parse("2026-10-05"), meter: "traces", groupBy: "workspace", workspaceId: "w1" },
  ...{ access: "read", reason: "not_reconciled" },
};
const ALL = { without: [] };
const providerOf = (...outcomes: readonly [ProviderOutcome, number][]) => ({
  ...{ readAt: "2026-11-01T00:00:00Z", refusal: null, changedSince: 0 },
  outcomes: outcomes.map(([outcome, workspaces]) => ({ meter: "traces" as const, outcome, workspaces })),
});

test("a total of the billing provider that differs is listed also where each day has another reason before it", () => {
  const provider = providerOf(["equal", 3], ["differs", 2]);
  const behind = providerBehind({ open: [DAY], provider }, ALL);
  expect(behind).toBe(2);
  const asked = { month: MONTH, without: [], settleAfterMs: 0, hasRedis: true };
  const listed = textOf(String(openDaysList([DAY], asked, "default", behind))).replaceAll(/\s+/g, " ");
  expect(listed).toContain("the billing provider's total differs");
  expect(listed).toContain("The total of the month, of 2 workspaces.");
  expect(textOf(String(openDaysList([DAY], asked, "default", 0)))).not.toContain("billing provider");

  // Where a day names it, it stands there once; what is equal or not compared keeps nothing open.
  expect(providerBehind({ open: [DAY, { ...DAY, reason: "provider_differs" }], provider }, ALL)).toBe(0);
  expect(providerBehind({ open: [DAY], provider: providerOf(["equal", 3], ["not_final", 2]) }, ALL)).toBe(0);
  // Which workspaces differ is not known there: it may be the one that is left out.
  expect(providerBehind({ open: [DAY], provider }, { without: ["w"] })).toBe(0);
});
