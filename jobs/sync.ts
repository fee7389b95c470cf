import { runOnSource } from "../src/pipeline/as-run.ts";
import { planSync } from "../src/pipeline/sync/sync.ts";
import { fillFetchQueue } from "./enqueue.ts";
import { CONTROL, defineJob } from "./job.ts";

/** Syncs a source: plans tasks for whatever is missing or not final, and enqueues them. */
export const syncJob = defineJob({
  ...CONTROL,
  name: "sync",
  handle: (context) =>
    runOnSource(
      context.source,
      "sync",
      async (source) => {
        const { planned, entered, askedAgain } = await planSync(source);
        return { planned, entered, askedAgain, fed: await fillFetchQueue(context) };
      },
      // Its fetch tasks go on.
      ({ entered }) => ({ outcome: "done", tasks: entered }),
    ),
});
