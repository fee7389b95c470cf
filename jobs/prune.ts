import { z } from "zod";
import { pruneLedgers } from "../src/pipeline/prune.ts";
import { CONTROL_OPTIONS, defineJob } from "./job.ts";

/** Keeps the ledgers bounded, and drops hours where `keepHours` says so. */
export const pruneJob = defineJob({
  name: "prune",
  queue: "control",
  payload: z.strictObject({ keepDays: z.int().min(1), keepHours: z.int().min(0).optional() }),
  options: CONTROL_OPTIONS,
  handle: async ({ source, userEmail }, { keepDays, keepHours }) => {
    const { store, sourceId } = await source.known();
    return pruneLedgers(store, { sourceId, keepDays, keepHours, userEmail });
  },
});
