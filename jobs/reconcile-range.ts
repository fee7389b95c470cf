import { z } from "zod";
import { reconcileScheduled } from "../src/pipeline/proof/reconcile.ts";
import { asRun, END_OF_SKIPPED, endOfCounts, SKIPPED } from "../src/pipeline/runs.ts";
import { CONTROL_OPTIONS, defineJob, type JobContext, LONGEST_DAYS } from "./job.ts";

/** Reconciles final time with the CSV export and repairs it: the last `days`, and earlier days that a missed night left. */
export const reconcileRangeJob = defineJob({
  name: "reconcile-range",
  queue: "control",
  payload: z.strictObject({ days: z.int().min(1).max(LONGEST_DAYS) }),
  options: CONTROL_OPTIONS,
  handle: async (context, { days }) =>
    asRun(
      await context.source.known(),
      "reconcile",
      (runId) => reconcileRange(context, { days, runId }),
      (counts) =>
        "skipped" in counts
          ? END_OF_SKIPPED
          : endOfCounts({
              failed: counts.failed + counts.unverified + counts.moved,
              differences: counts.open + counts.platformDisagrees,
            }),
    ),
});

async function reconcileRange(
  { source: handle }: JobContext,
  { days, runId }: { days: number; runId: number },
) {
  const source = await handle.openForSync();
  if (source === undefined) return SKIPPED;
  const results = await reconcileScheduled({ ...source, runId }, { days });
  const sum = (count: (result: (typeof results)[number]) => number) =>
    results.reduce((total, result) => total + count(result), 0);
  return {
    windows: sum(({ windows }) => windows),
    requests: sum(({ requests }) => requests),
    compared: sum(({ compared }) => compared),
    open: sum(({ open }) => open),
    platformDisagrees: sum(({ platformDisagrees }) => platformDisagrees),
    repaired: sum(({ repaired }) => repaired?.mended ?? 0),
    withdrawn: sum(({ repaired }) => repaired?.withdrawn ?? 0),
    failed: sum(({ failures }) => failures.length),
    unverified: sum(({ unverified }) => unverified),
    moved: sum(({ moved }) => moved),
  };
}
