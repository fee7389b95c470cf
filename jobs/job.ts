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

/** What a job's handler works with. */
export interface JobContext {
  /** The source whose queue the job came from. */
  readonly source: SourceHandle;
  readonly fetchQueue: FetchQueue;
  /** More tasks may wait than the fetch queue was filled with: it is filled again in a moment. Never rejects. */
  readonly enqueueSoon: () => Promise<void>;
  readonly userEmail: EmailPolicy;
  readonly alerts: AlertSettings;
  /** Where files for a warehouse are written; undefined if nowhere. */
  readonly files: FilesSettings | undefined;
  readonly gate: StoreGate;
  /** Stops the source's requests on all hosts for that many milliseconds. */
  readonly holdBack: (ms: number) => Promise<void>;
  readonly log: Logger;
  readonly clock: Clock;
  /** Aborted when the process must end, or when another worker has taken the job. */
  readonly signal: AbortSignal;
}

/** What a job did, in numbers: logged once, asserted on by tests. */
export type JobCounts = Readonly<Record<string, number | string>>;

/** One kind of job. Every job file exports one, in this shape. */
export interface JobDefinition<Payload> {
  readonly name: string;
  /** Jobs of `control` are few; those of `fetch` are limited to the source's request rate. */
  readonly queue: "control" | "fetch";
  readonly payload: z.ZodType<Payload>;
  readonly options: JobsOptions;
  /** It comes every few seconds: that nothing was to do is said at level debug only. */
  readonly isFrequent?: boolean;
  readonly handle: (context: JobContext, payload: Payload, job: Job) => Promise<JobCounts>;
}

/** Gives a definition its type from its own schema. */
export function defineJob<Payload>(definition: JobDefinition<Payload>): JobDefinition<Payload> {
  return definition;
}

/** 100 years, the longest duration that a setting takes. */
export const LONGEST_DAYS = 36_525;

/** What most control jobs have in common. The schedule repeats them, so few attempts are enough. */
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
