import { z } from "zod";
import { pruneLedgers } from "../src/core/pipeline/upkeep.ts";
import { CONTROL, defineJob, LONGEST_DAYS } from "./job.ts";

export const pruneJob = defineJob({
  ...CONTROL,
  name: "prune",
  payload: z.strictObject({
    keepDays: z.int().min(1).max(LONGEST_DAYS),
    keepHours: z
      .int()
      .min(0)
      .max(LONGEST_DAYS * 24)
      .optional(),
  }),
  handle: async ({ source, userEmail }, { keepDays, keepHours }) => {
    const { store, sourceId } = await source.known();
    return pruneLedgers(store, { sourceId, keepDays, keepHours, userEmail });
  },
});
