import { z } from "zod";
import { enqueueSlices, requeueLost } from "../src/pipeline/sync/enqueue.ts";
import { CONTROL_OPTIONS, defineJob } from "./job.ts";

/** Requeues what Postgres says is queued and Redis has lost, takes out what it no longer does, and ends finished backfills. */
export const requeueJob = defineJob({
  name: "sweep",
  queue: "control",
  payload: z.strictObject({}),
  options: { ...CONTROL_OPTIONS, attempts: 1 },
  handle: async ({ source, fetchQueue }) => {
    const { store, sourceId } = await source.known();
    const swept = await requeueLost(store, { sourceId, queue: fetchQueue });
    const { fed } = await enqueueSlices(store, { sourceId, queue: fetchQueue });
    return { ...swept, fed };
  },
});
