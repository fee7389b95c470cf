import { z } from "zod";
import { enqueueTasks, requeueLost } from "../src/pipeline/sync/enqueue.ts";
import { keepStatistics } from "../src/pipeline/upkeep.ts";
import { CONTROL_OPTIONS, defineJob } from "./job.ts";

/**
 * Enqueues waiting tasks, requeues messages that Redis lost, removes stale ones, ends finished backfills, and keeps
 * statistics of new tables.
 */
export const requeueJob = defineJob({
  // The older name stays: schedules in Redis, releases beside this one and dashboards know it.
  name: "requeue",
  queue: "control",
  payload: z.strictObject({}),
  options: { ...CONTROL_OPTIONS, attempts: 1 },
  isFrequent: true,
  handle: async ({ source, fetchQueue, enqueueSoon }) => {
    const { store, sourceId } = await source.known();
    const requeued = await requeueLost(store, { sourceId, queue: fetchQueue });
    const { fed } = await enqueueTasks(store, { sourceId, queue: fetchQueue });
    if (fed > 0) await enqueueSoon();
    return { ...requeued, fed, analyzed: await keepStatistics(store) };
  },
});
