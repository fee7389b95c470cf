import { z } from "zod";
import { enqueueSlices } from "../src/pipeline/sync/enqueue.ts";
import { CONTROL_OPTIONS, defineJob } from "./job.ts";

/** Fills the source's fetch queue from the slices that wait in Postgres. */
export const enqueueJob = defineJob({
  // The older name stays: schedules in Redis, releases beside this one and dashboards know it.
  name: "feed",
  queue: "control",
  payload: z.strictObject({}),
  options: { ...CONTROL_OPTIONS, attempts: 1 },
  isFrequent: true,
  handle: async ({ source, fetchQueue }) => {
    const { store, sourceId } = await source.known();
    return enqueueSlices(store, { sourceId, queue: fetchQueue });
  },
});
