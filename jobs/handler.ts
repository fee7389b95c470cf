import { type Job, WaitingError } from "bullmq";
import type { JobContext } from "./job.ts";
import { JOBS } from "./registry.ts";

/** A job that was done, with the numbers it logged. */
export interface DoneJob {
  readonly job: string;
  readonly seconds: number;
  readonly counts: Readonly<Record<string, unknown>>;
}

interface Watcher {
  readonly onTaken: () => void;
  readonly onDone: (done: DoneJob) => void;
}

/** What a worker does with a job: finds its kind, checks its data, does it, logs its result once. */
export function createHandler(context: JobContext, { onTaken, onDone }: Watcher) {
  return async (job: Job, token?: string, cancelled?: AbortSignal) => {
    onTaken();
    const definition = JOBS.get(job.name);
    if (definition === undefined) throw new Error(`job_unknown: this release has no job ${job.name}`);
    const payload = definition.payload.safeParse(job.data);
    if (!payload.success) {
      const problem = payload.error.issues[0];
      throw new Error(`job_data_invalid: ${job.name} ${problem?.path.join(".")} ${problem?.message}`);
    }
    const log = context.log.child({ job: job.id, name: job.name });
    const startedAt = context.clock.now();
    const { signal, release } = eitherOf(context.signal, cancelled);
    try {
      const counts = await definition.handle({ ...context, log, signal }, payload.data, job);
      const ms = context.clock.now() - startedAt;
      log.info({ ms, ...counts }, "job");
      onDone({ job: job.name, seconds: ms / 1000, counts });
      return counts;
    } catch (error) {
      if (cancelled?.aborted === true) throw new Error("lock_lost: another worker has taken this job");
      if (!context.signal.aborted) throw error;
      // The process ends: another one takes it, and no attempt is used.
      await job.moveToWait(token);
      throw new WaitingError();
    } finally {
      release();
    }
  };
}

/** Aborted with either. By listeners that go again: `process` lives for months, and jobs are many. */
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
