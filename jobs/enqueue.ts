import type { Queue } from "bullmq";
import { systemClock } from "../src/clock.ts";
import { enqueueTasks, requeueLost } from "../src/pipeline/sync/enqueue.ts";
import { keepStatistics } from "../src/pipeline/upkeep.ts";
import { CONTROL, defineJob, type JobContext } from "./job.ts";

/**
 * Fills the source's fetch queue from the tasks that wait in Postgres. It is added by whoever enters tasks or finds that
 * more may wait. `requeueJob`, which is scheduled, does the same.
 */
export const enqueueJob = defineJob({
  ...CONTROL,
  name: "enqueue",
  options: { ...CONTROL.options, attempts: 1 },
  isFrequent: true,
  handle: async (context) => ({ fed: await fillFetchQueue(context) }),
});

/** Enqueues waiting tasks of the source. Returns how many. */
export async function fillFetchQueue({ source, fetchQueue, enqueueSoon }: JobContext): Promise<number> {
  const { store, sourceId } = await source.known();
  const { fed } = await enqueueTasks(store, { sourceId, queue: fetchQueue });
  // More may wait than the queue had room for, and it is emptied fast: the schedule alone would leave workers idle.
  if (fed > 0) await enqueueSoon();
  return fed;
}

const SOON_MS = 2_000;

/** Adds an `enqueueJob` for the next even second: one for all hosts. Without Redis the schedule has to do. */
export async function enqueueSoon(control: Queue, now: number = systemClock.now()): Promise<void> {
  const at = (Math.floor(now / SOON_MS) + 1) * SOON_MS;
  const options = { ...enqueueJob.options, delay: at - now, jobId: `${enqueueJob.name}-${at}` };
  await control.add(enqueueJob.name, {}, options).catch(() => {});
}

/**
 * Enqueues waiting tasks, requeues messages that Redis lost, removes stale ones, ends finished backfills, and keeps
 * statistics of new tables.
 */
export const requeueJob = defineJob({
  ...CONTROL,
  name: "requeue",
  options: { ...CONTROL.options, attempts: 1 },
  isFrequent: true,
  handle: async (context) => {
    const { store, sourceId } = await context.source.known();
    const requeued = await requeueLost(store, { sourceId, queue: context.fetchQueue });
    const fed = await fillFetchQueue(context);
    return { ...requeued, fed, analyzed: await keepStatistics(store) };
  },
});
