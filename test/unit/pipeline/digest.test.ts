import { expect, test } from "vitest";
import { dueSince } from "../../../src/pipeline/alerts/digest.ts";

test.each([
  ["weekly", "2026-11-30T05:59Z", "2026-11-23T06:00Z"],
  ["weekly", "2026-11-30T06:00Z", "2026-11-30T06:00Z"],
  ["weekly", "2026-12-06T23:59Z", "2026-11-30T06:00Z"],
  ["monthly", "2026-12-05T05:59Z", "2026-11-05T06:00Z"],
  ["monthly", "2026-12-05T06:00Z", "2026-12-05T06:00Z"],
  ["monthly", "2027-01-01T00:00Z", "2026-12-05T06:00Z"],
  ["monthly", "2027-01-04T23:00Z", "2026-12-05T06:00Z"],
] as const)("the %s digest that is due at %s", (period, now, expected) => {
  expect(new Date(dueSince(period, Date.parse(now))).toISOString().slice(0, 16)).toBe(expected.slice(0, 16));
});
