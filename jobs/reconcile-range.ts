import { z } from "zod";
import { endOfCounts, runOnSource } from "../src/core/pipeline/as-run.ts";
import { reconcileScheduled } from "../src/core/pipeline/proof/reconcile.ts";
import type { OpenSource } from "../src/core/pipeline/source/source.ts";
import { CONTROL, defineJob, LONGEST_DAYS } from "./job.ts";

/** Compares the final days of the last `days` days with the export, and repairs them. Catches up on missed nights. */
export const reconcileRangeJob = defineJob({
  ...CONTROL,
  name: "reconcile-range",
  payload: z.strictObject({ days: z.int().min(1).max(LONGEST_DAYS) }),
  handle: (context, { days }) =>
    runOnSource(
      context.source,
      "reconcile",
      (source) => reconcileRange(source, days),
      ({ failed, unverified, moved, open, platformDisagrees }) =>
        endOfCounts({ failed: failed + unverified + moved, differences: open + platformDisagrees }),
    ),
});

async function reconcileRange(source: OpenSource, days: number) {
  const results = await reconcileScheduled(source, { days });
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
