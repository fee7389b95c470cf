import { describe, expect, test } from "vitest";
import { PlatformError } from "../../../../src/errors.ts";
import { pauseOf } from "../../../../src/pipeline/source/retry.ts";

const facts = { code: "x", message: "x", next: "x", retryable: true };
const said = (more: { status?: number; retryAfterMs?: number }) =>
  new PlatformError({ ...facts, method: "GET", url: "https://x.example", ...more });

describe("the pause after an error of the platform", () => {
  test.each([
    [0, 0],
    [3_000, 3_000],
    [300_000, 300_000],
    [300_001, 300_000],
  ])("that asks for %i ms is %i ms, five minutes at most", (retryAfterMs, pause) => {
    expect(pauseOf(said({ status: 503, retryAfterMs }), 1)).toBe(pause);
  });

  test("of a 429 without Retry-After is 10 s", () => {
    expect(pauseOf(said({ status: 429 }), 1)).toBe(10_000);
    expect(pauseOf(said({ status: 429 }), 7)).toBe(10_000);
  });

  test.each([
    [1, 1_000],
    [2, 2_000],
    [9, 256_000],
    [10, 300_000],
    [60, 300_000],
  ])("of any other error is random up to a bound that doubles, attempt %i", (attempt, bound) => {
    const pauses = Array.from({ length: 200 }, () => pauseOf(said({ status: 500 }), attempt));
    expect(Math.max(...pauses)).toBeLessThanOrEqual(bound);
    // Full jitter: two hundred clients do not come back together.
    expect(Math.max(...pauses) - Math.min(...pauses)).toBeGreaterThan(bound / 2);
  });
});
