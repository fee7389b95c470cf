import { z } from "zod";
import { checkTotals, REACHES } from "../src/pipeline/totals/check-totals.ts";
import { CONTROL_OPTIONS, defineJob } from "./job.ts";

/** Checks final days against weekly, monthly and yearly totals, and each dimension against the workspaces. */
export const checkTotalsJob = defineJob({
  name: "check-totals",
  queue: "control",
  payload: z.strictObject({ reach: z.enum(REACHES) }),
  options: CONTROL_OPTIONS,
  handle: async (context, { reach }) => {
    const source = await context.source.openForSync();
    if (source === undefined) return { skipped: "the platform refuses the key" };
    const { range, findings, failed, ...counts } = await checkTotals(source, reach);
    return { reach, ...counts };
  },
});
