import { z } from "zod";
import { REACHES } from "../src/domain/planning/windows.ts";
import { checkTotals } from "../src/pipeline/proof/check-totals.ts";
import { asRun, END_OF_SKIPPED, endOfTotals, SKIPPED } from "../src/pipeline/runs.ts";
import { CONTROL_OPTIONS, defineJob } from "./job.ts";

/** Checks final days against weekly, monthly and yearly totals, and each dimension against the workspaces. */
export const checkTotalsJob = defineJob({
  name: "check-totals",
  queue: "control",
  payload: z.strictObject({ reach: z.enum(REACHES) }),
  options: CONTROL_OPTIONS,
  handle: async (context, { reach }) =>
    asRun(
      await context.source.known(),
      "totals",
      async (runId) => {
        const source = await context.source.openForSync();
        if (source === undefined) return SKIPPED;
        const {
          range,
          findings,
          failed,
          others,
          tierDays = 0,
          ...counts
        } = await checkTotals({ ...source, runId }, reach);
        const ofOthers = others.map(({ meter, daysProved }) => [`${meter}DaysProved`, daysProved] as const);
        return { reach, ...counts, tierDays, ...Object.fromEntries(ofOthers) };
      },
      (counts) => ("skipped" in counts ? END_OF_SKIPPED : endOfTotals(counts)),
    ),
});
