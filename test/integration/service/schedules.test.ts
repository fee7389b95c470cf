import { Redis } from "ioredis";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { openQueue } from "../../../jobs/queues.ts";
import { restoreSchedules, schedulesOf } from "../../../jobs/schedule.ts";
import { startRedis } from "../../support/service.ts";

/** Schedules on a real Redis: each exists once, whichever process starts, and a run that is due is never lost. */

const SETTINGS = { syncEveryMs: 900_000, reconcileDays: 45, keepDays: 400, hasWebhook: true };

let queue: ReturnType<typeof openQueue>;

beforeEach(async () => {
  const connection = new Redis(await startRedis(), { maxRetriesPerRequest: null });
  queue = openQueue("control", "test", connection);
  onTestFinished(async () => {
    await queue.close();
    connection.disconnect();
  });
});

test("several processes that start at once leave one schedule and one next run of each job", async () => {
  const schedules = schedulesOf(SETTINGS);
  await Promise.all(Array.from({ length: 3 }, () => restoreSchedules(queue, schedules)));
  expect((await queue.getJobSchedulers()).map((one) => one.key).sort()).toEqual(
    schedules.map((one) => one.id).sort(),
  );
  const waiting = await queue.getJobs(["waiting", "delayed"]);
  const names = waiting.map((job) => `${job.name} ${JSON.stringify(job.data)}`);
  expect(new Set(names).size).toBe(names.length);
});

test("a correct schedule is left alone, a changed one is replaced, an unknown one is removed", async () => {
  await restoreSchedules(queue, schedulesOf(SETTINGS));
  expect(await restoreSchedules(queue, schedulesOf(SETTINGS))).toEqual({ restored: 0, removed: 0 });
  expect(await restoreSchedules(queue, schedulesOf({ ...SETTINGS, syncEveryMs: 60_000 }))).toEqual({
    restored: 1,
    removed: 0,
  });
  expect(Number((await queue.getJobScheduler("plan-round"))?.every)).toBe(60_000);
  await queue.upsertJobScheduler("job-of-an-older-release", { every: 1000 }, { name: "gone", data: {} });
  expect(await restoreSchedules(queue, schedulesOf({ ...SETTINGS, syncEveryMs: 60_000 }))).toEqual({
    restored: 0,
    removed: 1,
  });
});

test("a run that is overdue when a process starts is still there afterwards", async () => {
  await restoreSchedules(queue, schedulesOf(SETTINGS));
  const before = (await queue.getJobs(["waiting", "delayed"])).map((job) => job.id).sort();
  expect(before).toHaveLength(schedulesOf(SETTINGS).length);
  await restoreSchedules(queue, schedulesOf(SETTINGS));
  expect((await queue.getJobs(["waiting", "delayed"])).map((job) => job.id).sort()).toEqual(before);
});
