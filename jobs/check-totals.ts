import { z } from "zod";
import { checkTotals, REACHES } from "../src/pipeline/totals/check-totals.ts";
import { CONTROL_OPTIONS, defineJob } from "./job.ts";

/** Holds settled days against totals of weeks, months and years, and groupings against workspaces. */
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
