import type { Job, JobsOptions } from "bullmq";
import { z } from "zod";
import type { Clock } from "../src/clock.ts";
import type { EmailPolicy } from "../src/config/config.ts";
import type { Logger } from "../src/log.ts";
import type { AlertSettings } from "../src/pipeline/alerts/send-alerts.ts";
import type { FilesSettings } from "../src/pipeline/export/write-files.ts";
import type { SourceHandle } from "../src/pipeline/source/source-handle.ts";
import type { FetchQueue } from "../src/pipeline/sync/enqueue.ts";
import type { StoreGate } from "./holds.ts";

export interface JobContext {
  readonly source: SourceHandle;
  readonly fetchQueue: FetchQueue;
  /** Fills the fetch queue again in a moment, as more tasks may wait. Never rejects. */
  readonly enqueueSoon: () => Promise<void>;
  readonly userEmail: EmailPolicy;
  readonly alerts: AlertSettings;
  /** Undefined if no files are written. */
  readonly files: FilesSettings | undefined;
  readonly gate: StoreGate;
  /** Stops the source's requests on all hosts, for milliseconds. */
  readonly holdBack: (ms: number) => Promise<void>;
  readonly log: Logger;
  readonly clock: Clock;
  /** Aborted when the process ends, or when another worker has taken the job. */
  readonly signal: AbortSignal;
}

/** Logged once; tests assert on it. */
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

/** 100 years, the longest duration of a setting. */
export const LONGEST_DAYS = 36_525;

/** The schedule repeats control jobs, so few attempts are enough. */
export const CONTROL = {
  queue: "control" as const,
  payload: z.strictObject({}),
  options: {
    attempts: 3,
    backoff: { type: "custom" },
    removeOnComplete: { count: 200 },
    removeOnFail: { count: 200 },
  },
};
