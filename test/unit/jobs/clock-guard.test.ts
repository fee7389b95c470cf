import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { startClockGuard } from "../../../jobs/pause-jobs.ts";
import { poll } from "../../support/poll.ts";

async function setupGuard({ offMs = 0, isAway = false, responseMs = 0 } = {}) {
  const redis = { isAway };
  const own = { offMs };
  let now = 0;
  const requestedAt: number[] = [];
  const logs: Record<string, unknown>[] = [];
  const abort = new AbortController();
  onTestFinished(() => abort.abort());
  const pause = await startClockGuard({
    redisTime: async () => {
      if (redis.isAway) throw new Error("Connection is closed.");
      requestedAt.push(now);
      now += responseMs;
      return now;
    },
    elapsed: () => now,
    clock: {
      now: () => now + own.offMs,
      wait: async (ms, signal) => {
        await new Promise((next) => setImmediate(next));
        signal?.throwIfAborted();
        now += ms;
      },
    },
    log: pino({ level: "info", base: null }, { write: (line) => void logs.push(JSON.parse(line)) }),
    signal: abort.signal,
  });
  return { pause, redis, own, logs, requestedAt, time: () => now };
}

test.each([
  [0, false],
  [1_999, false],
  [-1_999, false],
  [2_001, true],
  [-2_001, true],
  [3_600_000, true],
  [-3_600_000, true],
])("a clock that is %i ms off holds: %s", async (offMs, held) => {
  expect((await setupGuard({ offMs })).pause.isPaused()).toBe(held);
});

test("a process takes up work when its clock is right again, and stops when it goes wrong; each is said once", async () => {
  const { pause, own, logs } = await setupGuard({ offMs: 3_600_000 });
  own.offMs = 10;
  await poll(() => !pause.isPaused());
  own.offMs = -90_000;
  await poll(() => pause.isPaused());
  own.offMs = 0;
  await poll(() => !pause.isPaused());
  expect(logs.map(({ code, offMs }) => [code, offMs])).toEqual([
    ["clock_off", 3_600_000],
    [undefined, 10],
    ["clock_off", 90_000],
    [undefined, 0],
  ]);
});

test("a process that never saw Redis's clock takes no job, and one that no longer sees it goes on", async () => {
  const { pause, redis } = await setupGuard({ isAway: true });
  expect(pause.isPaused()).toBe(true);
  redis.isAway = false;
  await poll(() => !pause.isPaused());
  redis.isAway = true;
  for (let turn = 0; turn < 5; turn++) await new Promise((next) => setImmediate(next));
  expect(pause.isPaused()).toBe(false);
});

test("a response that takes long says nothing against the clock", async () => {
  expect((await setupGuard({ responseMs: 4_000 })).pause.isPaused()).toBe(false);
});

test("Redis is asked every 10 s; once more within a second after somebody set the clock, and every second while it is off", async () => {
  const { own, requestedAt, time } = await setupGuard();
  await poll(() => requestedAt.length > 2);
  expect(requestedAt.slice(0, 3)).toEqual([0, 10_000, 20_000]);
  own.offMs = 3_600_000;
  const setAt = time();
  const later = () => requestedAt.filter((at) => at > setAt);
  await poll(() => later().length > 2);
  expect(later().slice(0, 3)).toEqual([setAt + 1000, setAt + 2000, setAt + 3000]);
});
