import { endOfCounts, runOnSource } from "../src/pipeline/as-run.ts";
import { readBill } from "../src/pipeline/bill/read-bill.ts";
import { CONTROL, defineJob } from "./job.ts";

/**
 * Compares months with the billing provider's totals, and reads limits, billing period and tags. Refused
 * requests are repeated once a day.
 */
export const readBillJob = defineJob({
  ...CONTROL,
  name: "read-bill",
  handle: (context) =>
    runOnSource(
      context.source,
      "totals",
      async (source) => {
        const bill = await readBill(source, { reach: "month", isPatient: true });
        const { provider, limits, period, tags } = bill;
        return {
          months: provider?.months.length ?? 0,
          requests: provider?.requests ?? 0,
          restated: provider?.restated ?? 0,
          differences: provider?.findings.length ?? 0,
          limits: limits?.read ?? 0,
          periods: period?.read ?? 0,
          tags: tags?.read ?? 0,
          failed: (provider?.failed.length ?? 0) + bill.failed.length,
        };
      },
      endOfCounts,
    ),
});
