import { RateLimitError } from "bullmq";
import { expect, onTestFinished, test } from "vitest";
import { createHandler } from "../../../jobs/handler.ts";
import type { JobContext } from "../../../jobs/job.ts";
import { systemClock } from "../../../src/clock.ts";
import { isFetchWaiting } from "../../../src/service/fetch-progress.ts";
import { readiness } from "../../../src/service/http/health.ts";
import { createMetrics } from "../../../src/service/http/metrics.ts";
import { openQueues } from "../../../src/service/queues.ts";
import { openStore } from "../../../src/store/db/database.ts";
import { poll } from "../../support/poll.ts";
import { startRedis } from "../../support/service.ts";
import { setupMigrated } from "../../support/store.ts";
import { startTcpProxy } from "../../support/tcp-proxy.ts";

/** Health and metrics beside servers that are silent, or take no write. */

async function setup() {
  const { url } = await setupMigrated();
  const redisUrl = await startRedis();
  const [toPostgres, toRedis] = await Promise.all([startTcpProxy(url), startTcpProxy(redisUrl)]);
  const store = openStore({
    url: toPostgres.through(url),
    // Silent connections stay until the store closes.
    limits: { lookEveryMs: 60_000, connectMs: 4_000, answerMs: 500, longestMs: 60_000 },
  });
  onTestFinished(() => store.close());
  const queues = await openQueues({
    slugs: ["default"],
    redisUrl: toRedis.through(redisUrl),
    isTraced: false,
    warn: () => {},
  });
  onTestFinished(queues.close);
  const state = {
    startedAt: Date.now(),
    takesJobs: false,
    lastJobAt: undefined,
    fetching: new Map(),
    storeFaults: new Map(),
    draining: false,
  };
  const ready = () => readiness({ state, reader: store.db, redisTime: queues.time, now: Date.now });
  const isReady = () =>
    poll(
      async () => {
        const health = await ready();
        if (!health.ok) throw new Error(JSON.stringify(health));
        return true;
      },
      { deadlineMs: 20_000, everyMs: 50 },
    );
  await isReady();
  return { toPostgres, toRedis, store, queues, ready, isReady };
}

test("a process is not ready while Redis takes no write: it says why, and is ready again by itself", async () => {
  const { queues, ready, isReady } = await setup();
  const redis = queues.producer;
  await redis.config("SET", "maxmemory", "1");
  expect((await ready()).checks.redis).toMatch(/^takes no write: OOM /);
  await redis.config("SET", "maxmemory", "0");
  await isReady();

  await redis.replicaof("127.0.0.1", 1);
  await poll(async () => /^takes no write: READONLY /.test((await ready()).checks.redis ?? ""));
  await redis.replicaof("NO", "ONE");
  await isReady();
});

test.each(["Postgres", "Redis"])(
  "health and metrics answer within 5 s while %s is silent",
  async (silent) => {
    const { toPostgres, toRedis, store, queues, ready } = await setup();
    const metrics = createMetrics(store.db, queues.count, async () => {
      await store.db.selectFrom("source").selectAll().execute();
      return [];
    });
    (silent === "Redis" ? toRedis : toPostgres).freeze({ newOnes: true });
    const before = performance.now();
    const [health, text] = await Promise.all([ready(), metrics.text()]);
    expect(performance.now() - before).toBeLessThan(5_000);
    expect(health.ok).toBe(false);
    expect(health.checks[silent.toLowerCase()]).toBe("no answer within 3000 ms");
    expect(text).toContain(`usage_etl_database_up ${silent === "Redis" ? 1 : 0}`);
  },
);

test("fetch messages wait for a worker unless their queue is empty, paused or limited", async () => {
  const { queues } = await setup();
  const { fetch } = queues.of("default");
  expect(await isFetchWaiting(fetch)).toBe(false);
  await fetch.add("extract-slice", {}, { priority: 1 });
  expect(await isFetchWaiting(fetch)).toBe(true);
  await fetch.pause();
  expect(await isFetchWaiting(fetch)).toBe(false);
  await fetch.resume();
  await fetch.rateLimit(60_000);
  expect(await isFetchWaiting(fetch)).toBe(false);
});

test("a job's work begins and ends once, whatever comes of it", async () => {
  let [running, ended] = [0, 0];
  const run = async (name: string, fail: unknown) => {
    const context = {
      source: { known: () => Promise.reject(fail), open: () => Promise.reject(fail) },
      log: { child: () => ({ info: () => {} }) },
      clock: systemClock,
      signal: new AbortController().signal,
    } as unknown as JobContext;
    const handle = createHandler(context, {
      onTaken: () => {},
      onDone: () => {},
      onWork: (queue) => {
        if (queue === "fetch") running++;
        return () => {
          if (queue === "fetch") ended++;
        };
      },
    });
    const job = {
      name,
      id: "1",
      data: name === "feed" ? {} : { sliceId: 1, generation: 1 },
      attemptsMade: 0,
    };
    await expect(handle(job as never)).rejects.toBeDefined();
  };
  await run("extract-slice", new Error("broken"));
  await run("extract-slice", new RateLimitError());
  await run("unknown", undefined);
  await run("feed", new Error("broken"));
  expect({ running, ended }).toEqual({ running: 2, ended: 2 });
});
