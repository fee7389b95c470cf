import { Worker } from "bullmq";
import { expect, onTestFinished, test } from "vitest";
import {
  fetchQueueOf,
  openQueue,
  PREFIX,
  producerConnection,
  queueName,
  workerConnection,
} from "../../../jobs/queues.ts";
import { enqueueSlices, requeueLost } from "../../../src/pipeline/sync/enqueue.ts";
import { steerBackfill } from "../../../src/store/work/backfills.ts";
import { enterSlices } from "../../../src/store/work/slices.ts";
import { usageEtl } from "../../support/cli.ts";
import { setupService } from "../../support/service.ts";

/** What stands in Redis beside what Postgres holds for queued. No worker runs but the one a test starts. */

const DAY_MS = 86_400_000;

function daysAgo(days: number): string {
  return new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10);
}

/** A backfill of some 2,000 slices, fed as far as the queue takes them. */
async function setupFed() {
  const bench = await setupService({ days: 130 });
  const { stdout } = await usageEtl(
    ["backfill", "--from", daysAgo(125), "--to", daysAgo(5), "--stride", "hour", "--detach", "--json"],
    bench.environment,
  );
  const [{ backfillId }] = JSON.parse(stdout) as [{ backfillId: number }];
  const connection = producerConnection(bench.redisUrl);
  const bullQueue = openQueue("fetch", "default", connection);
  await bullQueue.waitUntilReady();
  onTestFinished(async () => {
    await bullQueue.close();
    connection.disconnect();
  });
  const sourceId = await bench.value<number>("SELECT source_id FROM usage.source");
  const queue = fetchQueueOf(bullQueue);
  const { store } = bench;
  return {
    bench,
    store,
    sourceId,
    bullQueue,
    feed: () => enqueueSlices(store, { sourceId, queue }),
    sweep: () => requeueLost(store, { sourceId, queue }),
    steer: (action: "pause" | "resume" | "cancel") => steerBackfill(store, { backfillId, action }),
    standing: () => bullQueue.getJobCountByTypes("waiting", "prioritized", "delayed", "active"),
  };
}

test("a backfill that is paused, resumed and cancelled leaves no ticket that only costs the rate budget", async () => {
  const { feed, sweep, steer, standing } = await setupFed();
  await feed();
  expect(await standing()).toBe(1_000);
  expect(await sweep()).toMatchObject({ requeued: 0, removed: 0 });

  await steer("pause");
  expect(await sweep()).toMatchObject({ requeued: 0, removed: 1_000 });
  expect(await standing()).toBe(0);

  // Fed anew before the sweep comes round: the tickets of the first feeding go, those of the second stay.
  await steer("resume");
  await feed();
  await steer("pause");
  await steer("resume");
  await feed();
  expect(await standing()).toBe(2_000);
  expect(await sweep()).toMatchObject({ requeued: 0, removed: 1_000 });
  expect(await standing()).toBe(1_000);

  await steer("cancel");
  expect(await sweep()).toMatchObject({ requeued: 0, removed: 1_000 });
  expect(await standing()).toBe(0);
});

test("what is at work, what belongs to the routine and what is no ticket stays", async () => {
  const { bench, store, sourceId, bullQueue, feed, sweep, steer, standing } = await setupFed();
  await feed();
  const connection = workerConnection(bench.redisUrl);
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
  const day = Math.floor(Date.now() / DAY_MS - 2) * DAY_MS;
  const window = { stride: "day", start: day, end: day + DAY_MS } as const;
  await enterSlices(store.db, {
    sourceId,
    slices: [{ groupBy: "workspace", window, members: [{ scopeId: 1, workspaceId: "w" }] }],
  });
  expect(await feed()).toEqual({ fed: 1 });
  await bullQueue.add("made by hand", {}, { jobId: "made-by-hand" });

  expect(await sweep()).toMatchObject({ requeued: 0, removed: 999 });
  expect(await standing()).toBe(3);
  expect(await taken?.getState()).toBe("active");
});
