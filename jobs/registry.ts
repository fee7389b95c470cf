import { alertJob } from "./alert.ts";
import { checkTotalsJob } from "./check-totals.ts";
import { extractSliceJob } from "./extract-slice.ts";
import { enqueueJob } from "./feed.ts";
import type { JobDefinition } from "./job.ts";
import { planSyncJob } from "./plan-round.ts";
import { probeJob } from "./probe.ts";
import { pruneJob } from "./prune.ts";
import { reconcileRangeJob } from "./reconcile-range.ts";
import { requeueJob } from "./sweep.ts";

/** Every kind of job there is, by name. */
export const JOBS: ReadonlyMap<string, JobDefinition<never>> = new Map(
  [
    planSyncJob,
    checkTotalsJob,
    extractSliceJob,
    enqueueJob,
    reconcileRangeJob,
    requeueJob,
    pruneJob,
    alertJob,
    probeJob,
  ].map((job) => [job.name, job as unknown as JobDefinition<never>]),
);
