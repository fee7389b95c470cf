import { z } from "zod";
import { endOfTotals, runOnSource } from "../src/core/pipeline/as-run.ts";
import { checkTotals, REACHES } from "../src/core/pipeline/proof/check-totals.ts";
import { CONTROL, defineJob } from "./job.ts";

export const checkTotalsJob = defineJob({
  ...CONTROL,
  name: "check-totals",
  payload: z.strictObject({ reach: z.enum(REACHES) }),
  handle: (context, { reach }) =>
    runOnSource(
      context.source,
      "totals",
      async (source) => {
        const { range, findings, failed, others, tierDays = 0, ...counts } = await checkTotals(source, reach);
        const ofOthers = others.map(({ meter, daysProved }) => [`${meter}DaysProved`, daysProved] as const);
        return { reach, ...counts, tierDays, ...Object.fromEntries(ofOthers) };
      },
      endOfTotals,
    ),
});
