import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { PlatformError } from "../../../../src/errors.ts";
import { pauseOf, withRetries } from "../../../../src/pipeline/source/retry.ts";
import { statusError } from "../../../../src/platform/http/errors.ts";

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

  test("of a 429 is a second or more, since it uses no attempt", () => {
    expect(pauseOf(said({ status: 429, retryAfterMs: 0 }), 1)).toBe(1_000);
    expect(pauseOf(said({ status: 429, retryAfterMs: 2_000 }), 1)).toBe(2_000);
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

test.each([
  ["999999", 300_000, 'Its Retry-After, "999999", is longer than 5 min, the longest wait.'],
  ["soon", 10_000, 'Its Retry-After, "soon", cannot be read.'],
])("a Retry-After of %j is logged once as a warning, with the wait", async (retryAfter, wait, said) => {
  const logs: Record<string, unknown>[] = [];
  const waits: number[] = [];
  const context = { method: "GET", url: "http://h/", redact: (text: string) => text, variable: "X" } as const;
  const send = async () => {
    throw statusError({ status: 429, retryAfter, body: "slow down", now: 0 }, context);
  };
  const clock = { now: () => 0, wait: async (ms: number) => void waits.push(ms) };
  const log = pino({ level: "warn" }, { write: (line) => void logs.push(JSON.parse(line)) });
  await expect(withRetries({ log, clock, attempts: 4 }, send)).rejects.toMatchObject({
    code: "rate_limited",
  });
  expect(waits).toEqual([wait, wait, wait]);
  expect(logs).toMatchObject([
    { code: "rate_limited", reason: `GET http://h/ answered 429: slow down (${said})`, waitMs: wait },
  ]);
});
