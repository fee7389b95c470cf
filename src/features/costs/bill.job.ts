import { CONTROL, defineJob, type FeatureJob } from "../../../jobs/job.ts";
import type { Config } from "../../core/base/config.ts";
import { endOfCounts, runOnSource } from "../../core/pipeline/as-run.ts";
import { billPartsOf, STATEMENT_PARTS } from "./bill-terms.store.ts";
import { readBill } from "./read-bill.ts";
import { readAllWorkspaces } from "./read-terms.ts";

const readBillJob = defineJob({
  ...CONTROL,
  name: "read-bill",
  handle: (context) =>
    runOnSource(
      context.source,
      "totals",
      async (source) => {
        const bill = await readBill(source, { reach: "month", isPatient: true });
        const { provider, parts } = bill;
        return {
          months: provider?.months.length ?? 0,
          requests: provider?.requests ?? 0,
          restated: provider?.restated ?? 0,
          differences: provider?.findings.length ?? 0,
          limits: parts.usage_limits?.read ?? 0,
          periods: parts.billing_period?.read ?? 0,
          tags: parts.resource_tags?.read ?? 0,
          statementLines: STATEMENT_PARTS.reduce((sum, part) => sum + (parts[part]?.read ?? 0), 0),
          failed: (provider?.failed.length ?? 0) + bill.failed.length,
        };
      },
      endOfCounts,
    ),
});

/** Until the first night, a bill would not say that it lacks workspaces. So they are looked for at first contact too. */
const readWorkspacesJob = defineJob({
  ...CONTROL,
  name: "read-workspaces",
  isFrequent: true,
  handle: async ({ source: handle }) => {
    const { store, sourceId } = await handle.known();
    const parts = await billPartsOf(store.db, sourceId);
    if (parts.some(({ part }) => part === "all_workspaces")) return { read: 0 };
    const source = await handle.openForSync();
    return { read: source === undefined ? 0 : (await readAllWorkspaces(source)).read };
  },
});

export function billJobs({ syncEveryMs }: Pick<Config, "syncEveryMs">): FeatureJob[] {
  return [
    { job: readWorkspacesJob, repeat: { every: syncEveryMs } },
    // Runs after the nightly reconcile: its repairs would need a second comparison.
    { job: readBillJob, repeat: { pattern: "0 4 * * *", tz: "UTC" } },
  ];
}
