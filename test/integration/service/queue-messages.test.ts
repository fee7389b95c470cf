import { Worker } from "bullmq";
import { expect, onTestFinished, test } from "vitest";
import { fetchQueueOf, PREFIX, queueName, workerConnection } from "../../../jobs/queues.ts";
import { redisServerOf } from "../../../src/core/base/redis-server.ts";
import { enqueueTasks, requeueLost } from "../../../src/core/pipeline/sync/enqueue.ts";
import { steerBackfill } from "../../../src/core/store/work/backfills.ts";
import { createTasks } from "../../../src/core/store/work/tasks.ts";
import { now } from "../../support/clock.ts";
import { daysAgo, setupService } from "../../support/service.ts";

const DAY_MS = 86_400_000;

async function setupBackfill() {
  const bench = await setupService({ days: 130 });
  const range = ["--from", daysAgo(125), "--to", daysAgo(5), "--stride", "hour"];
  const backfillId = await bench.createBackfill(...range);
  const bullQueue = await bench.openQueue("fetch");
  const sourceId = await bench.value<number>("SELECT source_id FROM usage.source");
  const queue = fetchQueueOf(bullQueue);
  const { store } = bench;
  return {
    bench,
    store,
    sourceId,
    bullQueue,
    enqueue: () => enqueueTasks(store, { sourceId, queue }),
    requeue: () => requeueLost(store, { sourceId, queue }),
    steer: (action: "pause" | "resume" | "cancel") =>
      steerBackfill(store, { backfillId, action, by: { name: "ada", role: "operator", via: "command" } }),
    inRedis: () => bullQueue.getJobCountByTypes("waiting", "prioritized", "delayed", "active"),
  };
}

test("a backfill that is paused, resumed and cancelled leaves no stale message in the queue", async () => {
  const { enqueue, requeue, steer, inRedis } = await setupBackfill();
  await enqueue();
  expect(await inRedis()).toBe(1_000);
  expect(await requeue()).toMatchObject({ requeued: 0, removed: 0 });

  await steer("pause");
  expect(await requeue()).toMatchObject({ requeued: 0, removed: 1_000 });
  expect(await inRedis()).toBe(0);

  await steer("resume");
  await enqueue();
  await steer("pause");
  await steer("resume");
  await enqueue();
  expect(await inRedis()).toBe(2_000);
  expect(await requeue()).toMatchObject({ requeued: 0, removed: 1_000 });
  expect(await inRedis()).toBe(1_000);

  await steer("cancel");
  expect(await requeue()).toMatchObject({ requeued: 0, removed: 1_000 });
  expect(await inRedis()).toBe(0);
});

test("messages of running and routine tasks stay in the queue, and so do foreign jobs", async () => {
  const { bench, store, sourceId, bullQueue, enqueue, requeue, steer, inRedis } = await setupBackfill();
  await enqueue();
  const connection = workerConnection(redisServerOf({ url: bench.redisUrl }));
  const worker = new Worker(queueName("fetch", "default"), null, {
    connection,
    prefix: PREFIX,
    autorun: false,
  });
  onTestFinished(async () => {
    await worker.close();
    connection.disconnect();
  });
  const taken = await worker.getNextJob("a worker's token");
  await steer("cancel");
  const day = Math.floor(now() / DAY_MS - 2) * DAY_MS;
  const window = { stride: "day", start: day, end: day + DAY_MS } as const;
  await createTasks(store.db, {
    sourceId,
    tasks: [{ meter: "traces", groupBy: "workspace", window, members: [{ scopeId: 1, workspaceId: "w" }] }],
  });
  expect(await enqueue()).toEqual({ fed: 1 });
  await bullQueue.add("made by hand", {}, { jobId: "made-by-hand" });

  expect(await requeue()).toMatchObject({ requeued: 0, removed: 999 });
  expect(await inRedis()).toBe(3);
  expect(await taken?.getState()).toBe("active");
});
