import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { EtlError, PlatformError } from "../../../../../src/core/base/errors.ts";
import { sharesOf } from "../../../../../src/core/pipeline/source/limit-shares.ts";
import { pauseOf, withRetries } from "../../../../../src/core/pipeline/source/retries.ts";
import { createSplitLimit } from "../../../../../src/core/pipeline/source/source.ts";
import { statusError } from "../../../../../src/core/platform/http/errors.ts";

describe("the shares of a rate limit", () => {
  test("together never exceed it, and neither is nothing", () => {
    for (let limit = 1; limit <= 300; limit++) {
      const { fetch, control } = sharesOf(limit);
      const perSecond = ({ max, duration }: typeof fetch) => (max * 10_000) / duration;
      expect(perSecond(fetch) + perSecond(control), `${limit}`).toBe(limit);
      for (const share of [fetch, control]) expect(share.max, `${limit}`).toBeGreaterThanOrEqual(1);
      if (limit >= 10) expect(control.max, `${limit}`).toBe(Math.floor(limit / 10));
    }
  });
});

const facts = { code: "x", message: "x", next: "x", retryable: true };
const said = (more: { status?: number; retryAfterMs?: number }) =>
  new PlatformError({ ...facts, method: "GET", url: "https://x.example", ...more });

describe("the pause after an error of the platform", () => {
  test.each([
    [0, 0],
    [3_000, 3_000],
    [300_000, 300_000],
  ])("that asks for %i ms is %i ms", (retryAfterMs, pause) => {
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
    expect(Math.max(...pauses) - Math.min(...pauses)).toBeGreaterThan(bound / 2);
  });
});

async function run(errors: readonly Error[], more: { attempts?: number; signal?: AbortSignal } = {}) {
  const left = [...errors];
  const logs: Record<string, unknown>[] = [];
  const [waits, held]: [number[], number[]] = [[], []];
  const log = pino({ level: "debug" }, { write: (line) => void logs.push(JSON.parse(line)) });
  const clock = { now: () => 0, wait: async (ms: number) => void waits.push(ms) };
  const holdBack = async (ms: number) => void held.push(ms);
  let tried = 0;
  const ended = await withRetries({ log, clock, attempts: 3, holdBack, ...more }, async () => {
    tried++;
    const error = left.shift();
    if (error !== undefined) throw error;
    return "done";
  }).catch((error: Error) => error);
  return { ended, tried, waits, held, logs };
}

const CONTEXT = { method: "GET", url: "http://h/", redact: (text: string) => text, variable: "X" } as const;

test.each([
  ["999999", [10_000, 20_000, 40_000], 'Its Retry-After, "999999", is longer than 5 min, the longest wait.'],
  ["soon", [10_000, 20_000, 40_000], 'Its Retry-After, "soon", cannot be read.'],
])("a Retry-After of %j is logged once as a warning, with the wait", async (retryAfter, pauses, said) => {
  const error = statusError({ status: 429, retryAfter, body: "slow down", date: undefined, now: 0 }, CONTEXT);
  const { ended, waits, logs } = await run(Array(4).fill(error), { attempts: 4 });
  expect(ended).toMatchObject({ code: "rate_limited" });
  expect(waits).toEqual(pauses);
  expect(logs.filter(({ level }) => Number(level) >= 40)).toMatchObject([
    {
      code: "rate_limited",
      reason: `GET http://h/ responded with 429: slow down (${said})`,
      waitMs: pauses[0],
    },
  ]);
});

describe("work that fails", () => {
  const own = new EtlError({ ...facts, code: "store_away" });
  const final = new EtlError({ ...facts, retryable: false });
  const limited = said({ status: 429, retryAfterMs: 2_000 });
  const requests = said({ status: 503, retryAfterMs: 3_000 });

  test("is tried again as often as is allowed, and then the last error is thrown", async () => {
    expect(await run([requests, requests])).toMatchObject({
      ended: "done",
      tried: 3,
      waits: [3_000, 3_000],
      held: [],
    });
    expect(await run([requests, requests, limited])).toMatchObject({
      ended: limited,
      tried: 3,
      waits: [3_000, 3_000],
    });
    expect(await run([requests], { attempts: 1 })).toMatchObject({ ended: requests, tried: 1, waits: [] });
    const { waits, logs } = await run([own]);
    expect(waits).toHaveLength(1);
    expect(logs).toMatchObject([{ level: 30, code: "store_away", attempt: 1, waitMs: waits[0] }]);
  });

  test("is not tried again where that cannot help, and nobody waits", async () => {
    const refused = new PlatformError({
      ...facts,
      retryable: false,
      method: "GET",
      url: "https://x.example",
    });
    const foreign = Object.assign(new Error("x"), { retryable: true });
    for (const error of [final, refused, new Error("a bug"), foreign]) {
      expect(await run([error]), error.message).toEqual({
        ended: error,
        tried: 1,
        waits: [],
        held: [],
        logs: [],
      });
    }
  });

  test("by a limit holds back whoever uses the key, after the last attempt too", async () => {
    expect(await run([limited, requests])).toMatchObject({ held: [2_000], waits: [2_000, 3_000] });
    expect(await run([limited], { attempts: 1 })).toMatchObject({ held: [2_000], waits: [] });
    expect(await run([own, requests])).toMatchObject({ held: [] });
  });

  test("is not tried again once it is cancelled", async () => {
    const controller = new AbortController();
    const stopped = new Error("stopped");
    controller.abort(stopped);
    expect(await run([requests], { signal: controller.signal })).toMatchObject({ ended: stopped });
    expect(await run([requests], { signal: new AbortController().signal })).toMatchObject({
      ended: "done",
      tried: 2,
    });
  });
});

test.each([
  ["two days ahead", 2 * 86_400_000],
  ["a year behind", -365 * 86_400_000],
])("a date in Retry-After is one of the response's clock, which may be %s", (_, off) => {
  const now = Date.parse("2026-11-20T12:00:00Z");
  const text = (ms: number) => new Date(now + off + ms).toUTCString();
  const error = statusError({ status: 429, retryAfter: text(40_000), date: text(0), body: "", now }, CONTEXT);
  expect(error).toMatchObject({ retryAfterMs: 40_000, isRetryAfterOdd: false });
});

test("an error of our own servers waits half a minute at most", () => {
  const pauses = Array.from({ length: 200 }, () => pauseOf(new EtlError(facts), 30));
  expect(Math.max(...pauses)).toBeLessThanOrEqual(30_000);
  expect(Math.max(...pauses)).toBeGreaterThan(15_000);
});

test("responses are split until refusals outnumber 40, and ten more for each usable response", () => {
  const limit = createSplitLimit();
  const refusals = () => {
    let count = 0;
    for (; limit.allows(); count++) limit.refused();
    return count;
  };
  expect(refusals()).toBe(40);
  limit.usable();
  expect(refusals()).toBe(10);
  limit.usable();
  limit.usable();
  expect(refusals()).toBe(20);
});
