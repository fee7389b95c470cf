import { type Job, WaitingError } from "bullmq";
import type { JobContext, JobCounts } from "./job.ts";
import { JOBS } from "./registry.ts";

/** Is called when a worker takes and finishes jobs. */
export interface JobWatcher {
  readonly onTaken: () => void;
  /** A job of that queue begins. Returns what is called when it has ended, whatever came of it. */
  readonly onWork: (queue: "control" | "fetch") => () => void;
  /** A job succeeded, with the counts it logged. */
  readonly onDone: (done: { job: string; seconds: number; counts: JobCounts }) => void;
  readonly onFailed: (failed: { job: string; code: string }) => void;
}

/** Returns a worker's handler: it finds the job's kind, checks its payload, runs it and logs its counts once. */
export function createHandler(
  context: JobContext,
  { onTaken, onWork, onDone }: Omit<JobWatcher, "onFailed">,
) {
  return async (job: Job, token?: string, cancelled?: AbortSignal) => {
    onTaken();
    const definition = JOBS.get(job.name);
    if (definition === undefined) throw new Error(`job_unknown: This release has no job ${job.name}.`);
    const payload = definition.payload.safeParse(job.data);
    if (!payload.success) {
      const problem = payload.error.issues[0];
      throw new Error(`job_data_invalid: ${job.name} ${problem?.path.join(".")} ${problem?.message}`);
    }
    const log = context.log.child({ job: job.id, name: job.name });
    const startedAt = context.clock.now();
    const { signal, release } = eitherOf(context.signal, cancelled);
    const ended = onWork(definition.queue);
    try {
      const counts = await definition.handle({ ...context, log, signal }, payload.data, job);
      const ms = context.clock.now() - startedAt;
      log.info({ ms, ...counts }, "job");
      onDone({ job: job.name, seconds: ms / 1000, counts });
      return counts;
    } catch (error) {
      if (cancelled?.aborted === true) throw new Error("lock_lost: Another worker has taken this job.");
      if (!context.signal.aborted) throw error;
      // The process ends: the job goes back to the queue and uses no attempt.
      await job.moveToWait(token);
      throw new WaitingError();
    } finally {
      release();
      ended();
    }
  };
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
