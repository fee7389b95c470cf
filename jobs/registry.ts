import { extractSliceJob } from "./extract-slice.ts";
import { feedJob } from "./feed.ts";
import type { JobDefinition } from "./job.ts";
import { planControlTotalsJob } from "./plan-control-totals.ts";
import { planRoundJob } from "./plan-round.ts";
import { pruneJob } from "./prune.ts";
import { reconcileRangeJob } from "./reconcile-range.ts";
import { sweepJob } from "./sweep.ts";

/** Every kind of job there is, by name. */
export const JOBS: ReadonlyMap<string, JobDefinition<never>> = new Map(
  [planRoundJob, planControlTotalsJob, extractSliceJob, feedJob, reconcileRangeJob, sweepJob, pruneJob].map(
    (job) => [job.name, job as unknown as JobDefinition<never>],
  ),
);
