import { expect, test } from "vitest";
import { isQuiet } from "../../../src/pipeline/alerts/quiet-hours.ts";

const quiet = (times: string, at: string, timeZone = "UTC") =>
  isQuiet({ quietHours: times.split(", "), timeZone }, Date.parse(at));

test.each([
  // A Saturday.
  ["22:00-07:00", "2026-11-28T21:59:59Z", false],
  ["22:00-07:00", "2026-11-28T22:00:00Z", true],
  ["22:00-07:00", "2026-11-29T06:59:59Z", true],
  ["22:00-07:00", "2026-11-29T07:00:00Z", false],
  ["fri 22:00-07:00", "2026-11-28T06:59:59Z", true],
  ["fri 22:00-07:00", "2026-11-28T22:00:00Z", false],
  ["sun 22:00-07:00", "2026-11-30T06:59:00Z", true],
  ["sun 22:00-07:00", "2026-11-30T07:00:00Z", false],
  ["sat-sun", "2026-11-27T23:59:59Z", false],
  ["sat-sun", "2026-11-28T00:00:00Z", true],
  ["sat-sun", "2026-11-29T23:59:59Z", true],
  ["sat-sun", "2026-11-30T00:00:00Z", false],
  ["sun-mon", "2026-11-28T12:00:00Z", false],
  ["sun-mon", "2026-11-30T12:00:00Z", true],
  ["22:00-00:00", "2026-11-28T23:59:59Z", true],
  ["22:00-00:00", "2026-11-29T00:00:00Z", false],
  ["00:00-24:00", "2026-11-29T23:59:59Z", true],
  ["12:00-13:00, fri-sat 18:00-24:00", "2026-11-28T18:00:00Z", true],
])("%s at %s: %s", (times, at, expected) => {
  expect(quiet(times, at)).toBe(expected);
});

test.each([
  // 02:00 to 03:00 does not exist on 29 March 2026, and comes twice on 25 October.
  ["Europe/Zurich", "22:00-02:30", "2026-03-29T00:59:59Z", true],
  ["Europe/Zurich", "22:00-02:30", "2026-03-29T01:00:00Z", false],
  ["Europe/Zurich", "02:00-03:00", "2026-03-29T01:00:00Z", false],
  ["Europe/Zurich", "02:00-03:00", "2026-10-25T00:00:00Z", true],
  ["Europe/Zurich", "02:00-03:00", "2026-10-25T01:59:59Z", true],
  ["Europe/Zurich", "02:00-03:00", "2026-10-25T02:00:00Z", false],
  ["Europe/Zurich", "22:00-07:00", "2026-10-25T05:59:59Z", true],
  ["Europe/Zurich", "22:00-07:00", "2026-10-25T06:00:00Z", false],
  ["Asia/Kolkata", "sat", "2026-11-27T18:30:00Z", true],
  ["America/St_Johns", "22:00-07:00", "2026-11-29T01:29:59Z", false],
  ["America/St_Johns", "22:00-07:00", "2026-11-29T01:30:00Z", true],
])("%s, %s at %s: %s", (zone, times, at, expected) => {
  expect(quiet(times, at, zone)).toBe(expected);
});
