import { Worker } from "bullmq";
import { Redis } from "ioredis";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { openQueue, PREFIX, workerConnection } from "../../../jobs/queues.ts";
import { restoreSchedules, schedulesOf } from "../../../jobs/schedule.ts";
import { readConfig } from "../../../src/core/base/config.ts";
import { redisServerOf } from "../../../src/core/base/redis-server.ts";
import { filesJobs } from "../../../src/features/export/files.job.ts";
import { now } from "../../support/clock.ts";
import { poll } from "../../support/poll.ts";
import { startRedis } from "../../support/service.ts";

const CONFIG = readConfig({
  DATABASE_URL: "postgres://127.0.0.1:9/none",
  USAGE_BASE_URL: "http://127.0.0.1:9",
  USAGE_API_KEY: "key",
  USAGE_ALERT_WEBHOOK_URL: "http://127.0.0.1:9/hook",
});
const scheduled = (changed: Partial<typeof CONFIG> = {}) => {
  const config = { ...CONFIG, ...changed };
  return schedulesOf(config, filesJobs(config, "test"));
};

let url: string;
let queue: ReturnType<typeof openQueue>;
let connection: Redis;

beforeEach(async () => {
  url = await startRedis();
  connection = new Redis(url, { maxRetriesPerRequest: null });
  queue = openQueue("control", "test", connection);
  onTestFinished(async () => {
    await queue.close();
    connection.disconnect();
  });
});

test("several processes that start at once leave one schedule and one next run of each job", async () => {
  const schedules = scheduled();
  await Promise.all(Array.from({ length: 3 }, () => restoreSchedules(queue, schedules)));
  expect((await queue.getJobSchedulers()).map((one) => one.key).sort()).toEqual(
    schedules.map((one) => one.id).sort(),
  );
  const waiting = await queue.getJobs(["waiting", "delayed"]);
  const names = waiting.map((job) => `${job.name} ${JSON.stringify(job.data)}`);
  expect(new Set(names).size).toBe(names.length);
});

test("a correct schedule is left alone, a changed one is replaced, an unknown one is removed", async () => {
  await restoreSchedules(queue, scheduled());
  expect(await restoreSchedules(queue, scheduled())).toEqual({ restored: 0, removed: 0 });
  expect(await restoreSchedules(queue, scheduled({ syncEveryMs: 60_000 }))).toEqual({
    restored: 1,
    removed: 0,
  });
  expect(Number((await queue.getJobScheduler("sync"))?.every)).toBe(60_000);
  await queue.upsertJobScheduler("job-of-an-older-release", { every: 1000 }, { name: "gone", data: {} });
  expect(await restoreSchedules(queue, scheduled({ syncEveryMs: 60_000 }))).toEqual({
    restored: 0,
    removed: 1,
  });
});

test("a run that is overdue when a process starts is still there afterwards", async () => {
  await restoreSchedules(queue, scheduled());
  const before = (await queue.getJobs(["waiting", "delayed"])).map((job) => job.id).sort();
  expect(before).toHaveLength(scheduled().length);
  await restoreSchedules(queue, scheduled());
  expect((await queue.getJobs(["waiting", "delayed"])).map((job) => job.id).sort()).toEqual(before);
});

async function ahead<T>(ms: number, work: () => Promise<T>): Promise<T> {
  const realNow = Date.now;
  const clock = vi.spyOn(Date, "now").mockImplementation(() => realNow() + ms);
  try {
    return await work();
  } finally {
    clock.mockRestore();
  }
}

const DAY_MS = 86_400_000;

test("a next run that a host with a clock ahead set too far away is repaired at once, a right one is not", async () => {
  const schedules = scheduled();
  await ahead(35 * DAY_MS, () => restoreSchedules(queue, schedules));
  const next = async () => (await queue.getJobSchedulers()).map((one) => Number(one.next));
  expect(Math.min(...(await next()))).toBeGreaterThan(now() + 30 * DAY_MS);

  expect(await restoreSchedules(queue, schedules)).toEqual({ restored: schedules.length, removed: 0 });
  for (const { key, every, next } of await queue.getJobSchedulers()) {
    expect([key, Number(next) - now() < Number(every ?? 35 * DAY_MS)]).toEqual([key, true]);
  }
  expect(await restoreSchedules(queue, schedules)).toEqual({ restored: 0, removed: 0 });
  for (const ms of [-2_000, 2_000]) {
    const kept = { restored: 0, removed: 0 };
    expect(await ahead(ms, () => restoreSchedules(queue, schedules))).toEqual(kept);
  }
});

test("a nightly run that a host did too early is done again at its time", async () => {
  const schedules = scheduled().filter(({ id }) => id === "reconcile-range");
  await restoreSchedules(queue, schedules);
  const due = Number((await queue.getJobScheduler("reconcile-range"))?.next);
  const connection = workerConnection(redisServerOf({ url }));
  const early = new Worker(queue.name, null, { connection, prefix: PREFIX, autorun: false });
  onTestFinished(() => early.close().finally(() => connection.disconnect()));
  await ahead(DAY_MS, async () => {
    const job = await poll(() => early.getNextJob("token"), { deadlineMs: 30_000 });
    await job.moveToCompleted({}, "token", false);
  });
  expect(Number((await queue.getJobScheduler("reconcile-range"))?.next)).toBeGreaterThan(due);
  expect(await restoreSchedules(queue, schedules)).toEqual({ restored: 1, removed: 0 });
  expect(Number((await queue.getJobScheduler("reconcile-range"))?.next)).toBe(due);
  expect((await queue.getJobs(["delayed"])).map((job) => job.id)).toEqual([`repeat:reconcile-range:${due}`]);
});
