import { RateLimitError } from "bullmq";
import { sql } from "kysely";
import { expect, onTestFinished, test } from "vitest";
import { returnPlace } from "../../../jobs/control-request-limit.ts";
import type { JobContext } from "../../../jobs/job.ts";
import { createPause } from "../../../jobs/pause-jobs.ts";
import { jobsOf } from "../../../jobs/schedule.ts";
import { createHandler, startWorkers } from "../../../jobs/workers.ts";
import { openQueues } from "../../../src/app/service/queues.ts";
import { isFetchWaiting } from "../../../src/app/service/start-source.ts";
import { systemClock } from "../../../src/core/base/clock.ts";
import { redisServerOf } from "../../../src/core/base/redis-server.ts";
import { openStore } from "../../../src/core/store/db/database.ts";
import { liveness, processState, readiness } from "../../../src/web/health.ts";
import { createMetrics } from "../../../src/web/metrics.ts";
import { now } from "../../support/clock.ts";
import { poll } from "../../support/poll.ts";
import { openRelay } from "../../support/relay.ts";
import { startRedis } from "../../support/service.ts";
import { setupMigrated } from "../../support/store.ts";

async function setup() {
  const { url } = await setupMigrated();
  const redisUrl = await startRedis();
  const [toPostgres, toRedis] = await Promise.all([openRelay(url), openRelay(redisUrl)]);
  const store = openStore({
    url: toPostgres.through(url),
    // Silent connections stay until the store closes.
    limits: { lookEveryMs: 60_000, connectMs: 4_000, responseMs: 500, longestMs: 60_000 },
  });
  onTestFinished(() => store.close());
  const queues = await openQueues({
    slugs: ["default"],
    redis: redisServerOf({ url: toRedis.through(redisUrl) }),
    isTraced: false,
    warn: () => {},
  });
  onTestFinished(queues.close);
  const state = processState(now());
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
  return { toPostgres, toRedis, store, queues, state, ready, isReady };
}

test("a process says whether it is draining, and is not ready then", async () => {
  const { state, ready } = await setup();
  const checks = { postgres: "ok", store: "ok", redis: "ok" };
  expect(await ready()).toEqual({ ok: true, draining: false, checks });
  state.draining = true;
  expect(await ready()).toEqual({ ok: false, draining: true, checks });
});

test("readiness names why the store keeps nothing now, and liveness a loop that was blocked right before", async () => {
  const { state, ready } = await setup();
  let fault: string | undefined = "the connection ended";
  state.storeFaults.set("default", () => fault);
  expect((await ready()).checks.store).toBe("the connection ended");
  fault = "the disk is full";
  expect((await ready()).checks.store).toBe("the disk is full");
  fault = undefined;
  expect((await ready()).ok).toBe(true);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5_700);
  expect(liveness(state, now()).checks.event_loop).toMatch(/^blocked for /);
});

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

test.each(["Postgres", "Redis"])("health and metrics respond while %s is silent", async (silent) => {
  const { toPostgres, toRedis, store, queues, ready } = await setup();
  const metrics = createMetrics(store.db, queues.count, async () => {
    await sql`select * from usage.source`.execute(store.db);
    return [];
  });
  (silent === "Redis" ? toRedis : toPostgres).silence({ newOnes: true });
  const before = performance.now();
  const [health, text] = await Promise.all([ready(), metrics.text()]);
  expect(performance.now() - before).toBeLessThan(30_000);
  expect(health.ok).toBe(false);
  expect(health.checks[silent.toLowerCase()]).toBe("no response within 3000 ms");
  expect(text).toContain(`usage_etl_database_up ${silent === "Redis" ? 1 : 0}`);
});

test("fetch messages wait for a worker unless their queue is empty, paused or limited", async () => {
  const { queues } = await setup();
  const { fetch } = queues.of("default");
  expect(await isFetchWaiting(fetch)).toBe(false);
  await fetch.add("extract", {}, { priority: 1 });
  expect(await isFetchWaiting(fetch)).toBe(true);
  await fetch.pause();
  expect(await isFetchWaiting(fetch)).toBe(false);
  await fetch.resume();
  await fetch.rateLimit(60_000);
  expect(await isFetchWaiting(fetch)).toBe(false);
});

const ignore = () => {};

/** Workers of both queues, until the test ends. */
function work(
  queues: Awaited<ReturnType<typeof openQueues>>,
  context: JobContext,
  { onResponse = ignore, limiter = { max: 1, duration: 1 } } = {},
): void {
  const close = startWorkers({
    jobs: jobsOf([]),
    slug: "default",
    contexts: { control: context, fetch: context },
    limiter,
    clockOff: createPause(),
    connect: queues.connectWorker,
    prefix: queues.prefix,
    telemetry: {},
    warn: ignore,
    watcher: { onResponse, onTaken: ignore, onDone: ignore, onFailed: ignore, onWork: () => ignore },
  });
  onTestFinished(close);
}

const contextOf = (source: object) =>
  ({
    log: { warn: ignore, child: () => ({ info: ignore }) },
    gate: { ...createPause(), note: () => false },
    clock: systemClock,
    signal: new AbortController().signal,
    alerts: {},
    source,
  }) as unknown as JobContext;

test("fetch jobs that send no request take no place of the limit", async () => {
  const { queues } = await setup();
  const { store } = await setupMigrated();
  const { fetch } = queues.of("default");
  const context = contextOf({ open: async () => ({ store }) });
  // Their tasks are gone. With a place each they would take ten minutes.
  const jobs = await fetch.addBulk(
    Array.from({ length: 60 }, (_, n) => ({ name: "extract", data: { taskId: n + 1, generation: 1 } })),
  );
  work(queues, context, { limiter: { max: 6, duration: 60_000 } });
  await poll(async () => (await Promise.all(jobs.map((job) => job.isCompleted()))).every((is) => is), {
    deadlineMs: 50_000,
  });

  const counter = fetch.toKey("limiter");
  const connection = queues.connectWorker("test");
  onTestFinished(() => connection.disconnect());
  const left = async (places: number, { takenMsAgo, leftMs }: { takenMsAgo: number; leftMs: number }) => {
    await connection.set(counter, places, "PX", leftMs);
    await returnPlace(connection, { counter, share: { max: 9, duration: 10_000 }, takenMsAgo });
    return Number(await connection.get(counter));
  };
  expect(await left(5, { takenMsAgo: 100, leftMs: 9_000 })).toBe(4);
  expect(await left(5, { takenMsAgo: 5_000, leftMs: 9_000 })).toBe(5);
  expect(await left(0, { takenMsAgo: 100, leftMs: 9_000 })).toBe(0);
  expect(await left(5, { takenMsAgo: 100, leftMs: 60_000 })).toBe(5);
});

test("jobs of one kind that never end leave places to jobs of other kinds", async () => {
  const { queues } = await setup();
  const { control } = queues.of("default");
  const held = Promise.withResolvers<never>();
  held.promise.catch(ignore);
  let requested = 0;
  const known = () => (++requested > 2 ? Promise.reject(new Error("over")) : held.promise);
  const context = contextOf({ known });
  await control.addBulk(Array.from({ length: 6 }, () => ({ name: "requeue", data: {} })));
  work(queues, context);
  const counts = () => control.getJobCounts("active", "delayed", "failed");
  await poll(async () => (await counts()).delayed === 4, { deadlineMs: 20_000 });
  expect(await counts()).toEqual({ active: 2, delayed: 4, failed: 0 });
  await control.add("prune", { keepDays: 1 });
  await poll(async () => (await counts()).failed === 1, { deadlineMs: 20_000 });
  held.reject(new Error("over"));
  await poll(async () => (await counts()).failed === 7, { deadlineMs: 40_000 });
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
    const handle = createHandler(
      context,
      {
        onTaken: () => {},
        onDone: () => {},
        onWork: (queue) => {
          if (queue === "fetch") running++;
          return () => {
            if (queue === "fetch") ended++;
          };
        },
      },
      jobsOf([]),
    );
    const job = {
      name,
      id: "1",
      data: name === "enqueue" ? {} : { taskId: 1, generation: 1 },
      attemptsMade: 0,
    };
    await expect(handle(job as never)).rejects.toBeDefined();
  };
  await run("extract", new Error("broken"));
  await run("extract", new RateLimitError());
  await run("unknown", undefined);
  await run("enqueue", new Error("broken"));
  expect({ running, ended }).toEqual({ running: 2, ended: 2 });
});
