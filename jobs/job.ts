import type { Job, JobsOptions } from "bullmq";
import { z } from "zod";
import type { Clock } from "../src/core/base/clock.ts";
import type { EmailPolicy } from "../src/core/base/config.ts";
import type { Logger } from "../src/core/base/log.ts";
import type { SourceHandle } from "../src/core/pipeline/source/source-handle.ts";
import type { FetchQueue } from "../src/core/pipeline/sync/enqueue.ts";
import type { StoreGate } from "./holds.ts";

export interface JobContext {
  readonly source: SourceHandle;
  readonly fetchQueue: FetchQueue;
  /** Fills the fetch queue again in a moment, since more tasks may wait. Never rejects. */
  readonly enqueueSoon: () => Promise<void>;
  readonly userEmail: EmailPolicy;
  readonly gate: StoreGate;
  /** Stops the source's requests on all hosts for this time, in ms. */
  readonly holdBack: (ms: number) => Promise<void>;
  readonly log: Logger;
  readonly clock: Clock;
  /** Aborted when the process ends, or when another worker has taken the job. */
  readonly signal: AbortSignal;
}

export type JobCounts = Readonly<Record<string, number | string>>;

export interface JobDefinition<Payload> {
  readonly name: string;
  /** Jobs of `control` are few; those of `fetch` are limited to the source's request rate. */
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

/** 100 years, the longest duration of a setting. */
export const LONGEST_DAYS = 36_525;

/** Few attempts are enough, since the schedule repeats control jobs. */
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
