import type { Job, JobsOptions } from "bullmq";
import { z } from "zod";
import type { Clock } from "../src/core/base/clock.ts";
import type { EmailPolicy } from "../src/core/base/config.ts";
import type { Logger } from "../src/core/base/log.ts";
import type { SourceHandle } from "../src/core/pipeline/source/source-handle.ts";
import type { FetchQueue } from "../src/core/pipeline/sync/enqueue.ts";
import type { StoreGate } from "./pause-jobs.ts";

export interface JobContext {
  readonly source: SourceHandle;
  readonly fetchQueue: FetchQueue;
  /** Fills the fetch queue again within two seconds. Never rejects. */
  readonly enqueueSoon: () => Promise<void>;
  readonly userEmail: EmailPolicy;
  readonly gate: StoreGate;
  readonly holdBack: (ms: number) => Promise<void>;
  readonly log: Logger;
  readonly clock: Clock;
  /** Aborted when the process ends, or when another worker has taken the job. */
  readonly signal: AbortSignal;
}

export type JobCounts = Readonly<Record<string, number | string>>;

export interface JobDefinition<Payload> {
  readonly name: string;
  /** The queue `fetch` is limited to the source's request rate. `control` has few jobs. */
  readonly queue: "control" | "fetch";
  readonly payload: z.ZodType<Payload>;
  readonly options: JobsOptions;
  /** The job runs every few seconds, so idle runs are logged at level debug only. */
  readonly isFrequent?: boolean;
  readonly handle: (context: JobContext, payload: Payload, job: Job) => Promise<JobCounts>;
}

export function defineJob<Payload>(definition: JobDefinition<Payload>): JobDefinition<Payload> {
  return definition;
}

/** `every` is in ms; a cron pattern is in UTC. */
export type Repeat = { readonly every: number } | { readonly pattern: string; readonly tz: "UTC" };

/** A job that a feature adds. Undefined `repeat`: no schedule of this service starts it. */
export interface FeatureJob {
  readonly job: JobDefinition<Nothing>;
  readonly repeat: Repeat | undefined;
}

const NOTHING = z.strictObject({});
type Nothing = z.infer<typeof NOTHING>;

export const LONGEST_DAYS = 36_525;

/** Control jobs need few attempts, because the schedule repeats them. */
export const CONTROL = {
  queue: "control" as const,
  payload: NOTHING,
  options: {
    attempts: 3,
    backoff: { type: "custom" },
    removeOnComplete: { count: 200 },
    removeOnFail: { count: 200 },
  },
};
