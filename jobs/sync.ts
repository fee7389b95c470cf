import { runOnSource } from "../src/core/pipeline/as-run.ts";
import { endOfSync, planSync } from "../src/core/pipeline/sync/sync.ts";
import { fillFetchQueue } from "./enqueue.ts";
import { CONTROL, defineJob } from "./job.ts";

export const syncJob = defineJob({
  ...CONTROL,
  name: "sync",
  handle: (context) =>
    runOnSource(
      context.source,
      "sync",
      async (source) => {
        const { planned, created, requestedAgain, unknown } = await planSync(source);
        return { planned, created, requestedAgain, unknown, fed: await fillFetchQueue(context) };
      },
      endOfSync,
    ),
});
