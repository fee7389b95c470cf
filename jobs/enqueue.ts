import type { Queue } from "bullmq";
import { systemClock } from "../src/core/base/clock.ts";
import { enqueueTasks, requeueLost } from "../src/core/pipeline/sync/enqueue.ts";
import { keepStatistics } from "../src/core/pipeline/upkeep.ts";
import { CONTROL, defineJob, type JobContext } from "./job.ts";

export const enqueueJob = defineJob({
  ...CONTROL,
  name: "enqueue",
  options: { ...CONTROL.options, attempts: 1 },
  isFrequent: true,
  handle: async (context) => ({ fed: await fillFetchQueue(context) }),
});

export async function fillFetchQueue({ source, fetchQueue, enqueueSoon }: JobContext): Promise<number> {
  const { store, sourceId } = await source.known();
  const { fed } = await enqueueTasks(store, { sourceId, queue: fetchQueue });
  // More tasks may wait than the queue had room for. The schedule alone would leave workers idle.
  if (fed > 0) await enqueueSoon();
  return fed;
}

const SOON_MS = 2_000;

/** All hosts use the same time as job id, so they add one job. Without Redis the schedule does the work. */
export async function enqueueSoon(control: Queue, now: number = systemClock.now()): Promise<void> {
  const at = (Math.floor(now / SOON_MS) + 1) * SOON_MS;
  const options = { ...enqueueJob.options, delay: at - now, jobId: `${enqueueJob.name}-${at}` };
  await control.add(enqueueJob.name, {}, options).catch(() => {});
}

/** Also requeues messages that Redis lost, removes stale messages, ends backfills and analyzes new tables. */
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
