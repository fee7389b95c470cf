import { Redis } from "ioredis";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { createRequestLimit } from "../../../jobs/control-request-limit.ts";
import { PREFIX, queueName } from "../../../jobs/queues.ts";
import { type Clock, systemClock } from "../../../src/core/base/clock.ts";
import { poll } from "../../support/poll.ts";
import { logOf, setupService, startRedis } from "../../support/service.ts";

let url: string;
beforeEach(async () => {
  url = await startRedis();
});

function host(
  share: { max: number; duration: number },
  { slug = "one", signal = new AbortController().signal } = {},
) {
  const connection = new Redis(url);
  onTestFinished(() => connection.disconnect());
  const waits: number[] = [];
  const clock: Clock = {
    now: Date.now,
    wait: (ms, given) => {
      waits.push(ms);
      return systemClock.wait(ms, given);
    },
  };
  return { limit: createRequestLimit(connection, { slug, share, clock, signal }), waits, connection };
}

test("two hosts together send no more than the share, even if its windows are short", async () => {
  for (const [share, requests] of [
    [{ max: 3, duration: 400 }, 7],
    [{ max: 2, duration: 3 }, 400],
  ] as const) {
    const [a, b] = [host(share, { slug: `s${requests}` }), host(share, { slug: `s${requests}` })];
    const startedAt = performance.now();
    await Promise.all(Array.from({ length: requests }, (_, i) => (i % 2 ? a : b).limit.admit()));
    // A stall of the machine makes this longer, never shorter. Redis counts in whole milliseconds.
    const windows = Math.ceil(requests / share.max) - 1;
    expect(performance.now() - startedAt).toBeGreaterThan(windows * share.duration * 0.99 - 2);
  }
});

test("each source has a limit of its own", async () => {
  const [one, other] = [
    host({ max: 1, duration: 60_000 }),
    host({ max: 1, duration: 60_000 }, { slug: "two" }),
  ];
  await one.limit.admit();
  await other.limit.admit();
  expect([...one.waits, ...other.waits]).toEqual([]);
});

test("a hold on one host stops the others, for the longest pause", async () => {
  const share = { max: 100, duration: 10_000 };
  const [a, b] = [host(share), host(share)];
  await a.limit.holdBack(600);
  await b.limit.holdBack(50);
  await b.limit.admit();
  expect(b.waits.length).toBeGreaterThan(0);
  expect(b.waits[0]).toBeGreaterThan(500);
});

test("a 429 of a control job stops the fetch queue as well", async () => {
  const bench = await setupService({ days: 2 });
  bench.standin.faults.script({
    fault: { kind: "status", status: 429, retry_after: "5" },
    match: { path: "/workspaces" },
  });
  await bench.serve();
  const held = async (key: string) => (await bench.redis.pttl(key)) > 0;
  await poll(
    async () =>
      (await held(`${PREFIX}:${queueName("fetch", "default")}:limiter`)) &&
      (await held(`${PREFIX}:budget-default:hold`)),
    { deadlineMs: 30_000, everyMs: 50 },
  );
  await bench.loaded();
});

test("a platform that responds with 429 for a while costs no fetch task, and the log says so without a flood", async () => {
  const bench = await setupService({ days: 2, workspaces: 1 });
  bench.standin.faults.script({
    fault: { kind: "status", status: 429, retry_after: 0 },
    times: 24,
    match: { stride: "hour" },
  });
  const service = await bench.serve();
  await bench.loaded();
  expect(await bench.count("SELECT count(*) FROM usage.fetch WHERE status = 429")).toBe(24);
  expect(await bench.count("SELECT count(*) FROM usage.failure")).toBe(0);
  const codes = logOf(service).flatMap(({ code }) => (typeof code === "string" ? [code] : []));
  expect(new Set(codes)).toEqual(new Set(["redis_settings", "rate_limited", "bill_refused"]));
  expect(codes.filter((code) => code === "rate_limited").length).toBeLessThanOrEqual(20);
});
