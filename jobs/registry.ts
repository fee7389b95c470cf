import { alertJob } from "./alert.ts";
import { checkTotalsJob } from "./check-totals.ts";
import { enqueueJob } from "./enqueue.ts";
import { extractSliceJob } from "./extract-slice.ts";
import type { JobDefinition } from "./job.ts";
import { probeJob } from "./probe.ts";
import { pruneJob } from "./prune.ts";
import { reconcileRangeJob } from "./reconcile-range.ts";
import { requeueJob } from "./requeue.ts";
import { planSyncJob } from "./sync.ts";

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
