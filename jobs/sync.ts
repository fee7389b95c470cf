import { z } from "zod";
import { enqueueSlices } from "../src/pipeline/sync/enqueue.ts";
import { planSync } from "../src/pipeline/sync/sync.ts";
import { CONTROL_OPTIONS, defineJob } from "./job.ts";

/** A round of a source: enters what is required, not settled and not in flight, and feeds the queue. */
export const planSyncJob = defineJob({
  name: "plan-round",
  queue: "control",
  payload: z.strictObject({}),
  options: CONTROL_OPTIONS,
  handle: async (context) => {
    const source = await context.source.openForSync();
    if (source === undefined) return { skipped: "the platform refuses the key" };
    const { planned, entered, askedAgain } = await planSync(source);
    const { fed } = await enqueueSlices(source.store, {
      sourceId: source.sourceId,
      queue: context.fetchQueue,
    });
    return { planned, entered, askedAgain, fed };
  },
});
