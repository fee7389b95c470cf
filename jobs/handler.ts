import { type Job, RateLimitError, UnrecoverableError, WaitingError } from "bullmq";
import { EtlError } from "../src/errors.ts";
import { faultOf } from "../src/faults.ts";
import { LOCK_LOST } from "../src/pipeline/extract/work-task.ts";
import type { JobContext, JobCounts } from "./job.ts";
import { JOBS } from "./registry.ts";
import "../src/validation.ts";

/** Is called when a worker takes and finishes jobs. */
export interface JobWatcher {
  readonly onTaken: () => void;
  /** The control queue has said whether it has a job: every 10 s at least while one of its places is free. */
  readonly onAnswer: () => void;
  /** A job of that queue begins. Returns what is called when it has ended, whatever came of it. */
  readonly onWork: (queue: "control" | "fetch") => () => void;
  /** A job succeeded, with the counts it logged. */
  readonly onDone: (done: { job: string; seconds: number; counts: JobCounts }) => void;
  readonly onFailed: (failed: { job: string; code: string }) => void;
}

/** Returns a worker's handler: it finds the job's kind, checks its payload, runs it and logs its counts once. */
export function createHandler(
  context: JobContext,
  { onTaken, onWork, onDone }: Omit<JobWatcher, "onFailed" | "onAnswer">,
) {
  return async (job: Job, token?: string, cancelled?: AbortSignal) => {
    onTaken();
    const definition = JOBS.get(job.name);
    if (definition === undefined) throw unusable("job_unknown", `This release has no job ${job.name}.`);
    const payload = definition.payload.safeParse(job.data);
    if (!payload.success) {
      const problem = payload.error.issues[0];
      const where = `${job.name} ${problem?.path.join(".")}`;
      throw unusable("job_data_invalid", `${where} ${problem?.message}.`);
    }
    const log = context.log.child({ job: job.id, name: job.name });
    const startedAt = context.clock.now();
    const { signal, release } = eitherOf(context.signal, cancelled);
    const ended = onWork(definition.queue);
    try {
      const counts = await definition.handle({ ...context, log, signal }, payload.data, job);
      const ms = context.clock.now() - startedAt;
      const isQuiet = definition.isFrequent === true && Object.values(counts).every((count) => count === 0);
      log[isQuiet ? "debug" : "info"]({ ms, ...counts }, "job");
      onDone({ job: job.name, seconds: ms / 1000, counts });
      return counts;
    } catch (error) {
      if (cancelled?.aborted === true) throw lockLost();
      const isStoreAway = context.gate.note(error);
      const goesBack = context.signal.aborted || (isStoreAway && definition.queue === "fetch");
      if (!goesBack) throw isOfQueue(error) ? error : (faultOf(error) ?? error);
      // The process ends, or can keep no answer: the job goes back to the queue and uses no attempt.
      await job.moveToWait(token);
      throw new WaitingError();
    } finally {
      release();
      ended();
    }
  };
}

/** BullMQ's own errors say what becomes of the job. */
function isOfQueue(error: unknown): boolean {
  return error instanceof UnrecoverableError || error instanceof RateLimitError;
}

function unusable(code: string, message: string): EtlError {
  return new EtlError({ code, message, next: "Nothing: it did no harm." });
}

function lockLost(): EtlError {
  const message = "Another worker has taken this job.";
  return new EtlError({ code: LOCK_LOST, message, next: "Nothing.", retryable: true });
}

/**
 * A signal that is aborted with either of two. `AbortSignal.any` would leave one listener a job on the signal of the
 * process, which lives for months.
 */
function eitherOf(process: AbortSignal, job: AbortSignal | undefined) {
  const own = new AbortController();
  const stop = () => own.abort((process.aborted ? process : job)?.reason);
  const signals = job === undefined ? [process] : [process, job];
  for (const signal of signals) signal.addEventListener("abort", stop, { once: true });
  if (signals.some((signal) => signal.aborted)) stop();
  const release = () => {
    for (const signal of signals) signal.removeEventListener("abort", stop);
  };
  return { signal: own.signal, release };
}
