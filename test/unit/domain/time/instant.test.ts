import { expect, test } from "vitest";
import { shortInstant } from "../../../../src/domain/time/days.ts";

test.each([
  ["2026-03-01T00:00:00Z", "2026-03-01"],
  ["2026-03-01T00:00:00.001Z", "2026-03-01T00:00Z"],
  ["2026-03-01T05:00:59Z", "2026-03-01T05:00Z"],
  ["2026-03-01T02:30:00+02:30", "2026-03-01"],
])("%s is %s", (instant, text) => {
  expect(shortInstant(instant)).toBe(text);
  expect(shortInstant(Date.parse(instant))).toBe(text);
});
