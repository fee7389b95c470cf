import { z } from "zod";
import { planControlTotals } from "../src/pipeline/round.ts";
import { CONTROL_OPTIONS, defineJob } from "./job.ts";

/** Enters the week, month and year windows over settled time that the days will be held against. */
export const planControlTotalsJob = defineJob({
  name: "plan-control-totals",
  queue: "control",
  payload: z.strictObject({}),
  options: CONTROL_OPTIONS,
  handle: async (context) => {
    const source = await context.source.openForRound();
    if (source === undefined) return { skipped: "the platform refuses the key" };
    const { planned, entered } = await planControlTotals(source);
    return { planned, entered };
  },
});
