import { z } from "zod";
import { asRun, END_OF_SKIPPED, SKIPPED } from "../src/pipeline/runs.ts";
import { enqueueTasks } from "../src/pipeline/sync/enqueue.ts";
import { planSync } from "../src/pipeline/sync/sync.ts";
import { CONTROL_OPTIONS, defineJob } from "./job.ts";

/** Syncs a source: plans tasks for whatever is missing or not final, and enqueues them. */
export const syncJob = defineJob({
  // The older name stays: schedules in Redis, releases beside this one and dashboards know it.
  name: "sync",
  queue: "control",
  payload: z.strictObject({}),
  options: CONTROL_OPTIONS,
  handle: async (context) =>
    asRun(
      await context.source.known(),
      "sync",
      async (runId) => {
        const source = await context.source.openForSync();
        if (source === undefined) return SKIPPED;
        const { planned, entered, askedAgain } = await planSync({ ...source, runId });
        const { store, sourceId } = source;
        const { fed } = await enqueueTasks(store, { sourceId, queue: context.fetchQueue });
        if (fed > 0) await context.enqueueSoon();
        return { planned, entered, askedAgain, fed };
      },
      // Its fetch tasks go on.
      (counts) => ("skipped" in counts ? END_OF_SKIPPED : { outcome: "done", tasks: counts.entered }),
    ),
});
