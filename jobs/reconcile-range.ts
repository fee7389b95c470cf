import { z } from "zod";
import { reconcileLately } from "../src/pipeline/reconcile.ts";
import { CONTROL_OPTIONS, defineJob } from "./job.ts";

/** Holds settled days of the last `days` against the platform's CSV export and keeps what differs. */
export const reconcileRangeJob = defineJob({
  name: "reconcile-range",
  queue: "control",
  payload: z.strictObject({ days: z.int().min(1) }),
  options: CONTROL_OPTIONS,
  handle: async (context, { days }) => {
    const source = await context.source.open();
    const { windows, compared, differences, failures } = await reconcileLately(source, days);
    return { windows, compared, differences: differences.length, failed: failures.length };
  },
});
