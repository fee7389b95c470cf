import { z } from "zod";
import { pruneLedgers } from "../src/pipeline/upkeep.ts";
import { CONTROL_OPTIONS, defineJob, LONGEST_DAYS } from "./job.ts";

/** Deletes history older than `keepDays`, and hourly records older than `keepHours` if given. */
export const pruneJob = defineJob({
  name: "prune",
  queue: "control",
  payload: z.strictObject({
    keepDays: z.int().min(1).max(LONGEST_DAYS),
    keepHours: z
      .int()
      .min(0)
      .max(LONGEST_DAYS * 24)
      .optional(),
  }),
  options: CONTROL_OPTIONS,
  handle: async ({ source, userEmail }, { keepDays, keepHours }) => {
    const { store, sourceId } = await source.known();
    return pruneLedgers(store, { sourceId, keepDays, keepHours, userEmail });
  },
});
