import { CONTROL, defineJob, type FeatureJob } from "../../../jobs/job.ts";
import { endOfCounts, runOnSource } from "../../core/pipeline/as-run.ts";
import { readBill } from "./read-bill.ts";

const readBillJob = defineJob({
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

export function billJobs(): FeatureJob[] {
  // Runs after the nightly reconcile: its repairs would need a second comparison.
  return [{ job: readBillJob, repeat: { pattern: "0 4 * * *", tz: "UTC" } }];
}
