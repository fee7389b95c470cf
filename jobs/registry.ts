import { alertJob } from "./alert.ts";
import { checkTotalsJob } from "./check-totals.ts";
import { enqueueJob } from "./enqueue.ts";
import { extractJob } from "./extract.ts";
import type { JobDefinition } from "./job.ts";
import { probeJob } from "./probe.ts";
import { pruneJob } from "./prune.ts";
import { readBillJob } from "./read-bill.ts";
import { reconcileRangeJob } from "./reconcile-range.ts";
import { requeueJob } from "./requeue.ts";
import { syncJob } from "./sync.ts";
import { writeFilesJob } from "./write-files.ts";

const jobs = [
  syncJob,
  enqueueJob,
  requeueJob,
  extractJob,
  reconcileRangeJob,
  checkTotalsJob,
  readBillJob,
  pruneJob,
  alertJob,
  probeJob,
  writeFilesJob,
];

/** Every kind of job, by its name in BullMQ. */
export const JOBS: ReadonlyMap<string, JobDefinition<never>> = new Map(
  jobs.map((job) => [job.name, job as unknown as JobDefinition<never>]),
);
