import { runOnSource } from "../src/pipeline/as-run.ts";
import { planSync } from "../src/pipeline/sync/sync.ts";
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
        const { planned, entered, askedAgain } = await planSync(source);
        return { planned, entered, askedAgain, fed: await fillFetchQueue(context) };
      },
      ({ entered }) => ({ outcome: "done", tasks: entered }),
    ),
});
