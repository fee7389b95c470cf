import "../src/core/base/validation.ts";
import {
  DelayedError,
  type Job,
  RateLimitError,
  type Telemetry,
  UnrecoverableError,
  WaitingError,
  Worker,
} from "bullmq";
import { EtlError } from "../src/core/base/errors.ts";
import { faultOf, stopsWrites } from "../src/core/base/faults.ts";
import type { Warn } from "../src/core/base/log.ts";
import type { RedisConnection } from "../src/core/base/redis-connect.ts";
import { LOCK_LOST } from "../src/core/pipeline/extract/work-task.ts";
import type { Share } from "../src/core/pipeline/source/limit-shares.ts";
import { pauseOf } from "../src/core/pipeline/source/retries.ts";
import { returnPlace } from "./control-request-limit.ts";
import type { JobContext, JobCounts } from "./job.ts";
import type { Pause } from "./pause-jobs.ts";
import { type QueueKind, queueName } from "./queues.ts";
import type { Jobs } from "./schedule.ts";

const CONCURRENCY = 4;
/** Control jobs of one name that run at once. Other jobs get the remaining places. */
const MOST_OF_A_KIND = 2;
const REQUEST_AGAIN_MS = 10_000;

/** A job whose lock is not renewed for this time goes to another worker at the next stalled check. */
const LOCK_MS = 30_000;
const STALLED_CHECK_MS = 5_000;
/** Longest blocking read of a worker. It must be shorter than the socket timeout. */
const WAIT_FOR_JOB_S = 10;
/** Pause of a worker whose connection broke. BullMQ's default is 15 s. */
const RETRY_MS = 1_000;
/**
 * How long a closing worker waits for Redis to record the ends of its jobs. Otherwise another worker gets each job after
 * its lock expires: fetch tasks are done or handed back by then, other jobs run again.
 */
const CLOSE_WITHOUT_REDIS_MS = 10_000;
const QUERY_REDIS_EVERY_MS = 1_000;

interface WorkersInput {
  readonly jobs: Jobs;
  readonly slug: string;
  readonly contexts: Readonly<Record<QueueKind, JobContext>>;
  readonly limiter: Share;
  readonly clockOff: Pause;
  readonly connect: (name: string) => RedisConnection;
  readonly prefix: string;
  readonly telemetry: { readonly telemetry?: Telemetry };
  readonly warn: Warn;
  readonly watcher: JobWatcher;
}

class ServiceWorker extends Worker {
  /** Called after each read of the queue, with or without a job. It proves that the worker's loop is alive. */
  onResponse = (): void => {};

  protected override async moveToActive(token: string, name?: string) {
    const job = await super.moveToActive(token, name);
    this.onResponse();
    return job;
  }

  /** Waits for running jobs as long as Redis responds, because Redis must record their ends. */
  async closeWith(connection: RedisConnection): Promise<void> {
    let respondedAt = performance.now();
    const { promise: redisIsAway, resolve: giveUp } = Promise.withResolvers<void>();
    const requesting = setInterval(() => {
      connection.ping().then(
        () => {
          respondedAt = performance.now();
        },
        () => {},
      );
      if (performance.now() - respondedAt > CLOSE_WITHOUT_REDIS_MS) giveUp();
    }, QUERY_REDIS_EVERY_MS);
    // While ioredis reconnects, it never reports the end that BullMQ's `close` waits for. The last two lines do the
    // rest of `close`; after a complete `close` they have no effect.
    await Promise.race([this.close(), redisIsAway]).finally(() => clearInterval(requesting));
    await this.lockManager.close();
    await this.backend.close(true);
  }
}

/** Abort the jobs' signal before closing: the closer waits for running jobs. */
export function startWorkers(input: WorkersInput): () => Promise<void> {
  const standstills = watchStandstills();
  const closers = (["control", "fetch"] as const).map((kind) =>
    startWorker(kind, input, standstills.stoodStillLately),
  );
  return async () => {
    standstills.close();
    await Promise.all(closers.map((close) => close()));
  };
}

function startWorker(
  kind: QueueKind,
  input: WorkersInput,
  stoodStillLately: () => boolean,
): () => Promise<void> {
  const { slug, contexts, limiter, clockOff, connect, prefix, telemetry, warn, watcher } = input;
  const { log, gate } = contexts[kind];
  const connection = connect(`${kind} worker`);
  const handle = createHandler(contexts[kind], watcher, input.jobs);
  const work: typeof handle = async (job, token, cancelled) => {
    const counts = await handle(job, token, cancelled);
    if (kind === "fetch" && (counts.requests ?? 0) === 0) {
      const takenMsAgo = Date.now() - (job.processedOn ?? 0);
      await returnPlace(connection, { counter: worker.toKey("limiter"), share: limiter, takenMsAgo });
    }
    return counts;
  };
  const worker = new ServiceWorker(queueName(kind, slug), work, {
    connection,
    prefix,
    concurrency: CONCURRENCY,
    ...telemetry,
    lockDuration: LOCK_MS,
    stalledInterval: STALLED_CHECK_MS,
    drainDelay: WAIT_FOR_JOB_S,
    runRetryDelay: RETRY_MS,
    maxStalledCount: 20,
    autorun: false,
    ...(kind === "fetch" ? { limiter } : {}),
    settings: { backoffStrategy: (attempts, _type, error) => pauseOf(error ?? new Error(), attempts) },
  });
  if (kind === "control") worker.onResponse = watcher.onResponse;
  worker.on("error", (error) => {
    // These errors are always Redis's, though a refused connection names no server.
    const { code = "" } = faultOf(error) ?? {};
    const named = code.startsWith("redis") ? code : "worker_error";
    warn({ code: named, at: worker.name, reason: error.message });
  });
  // Another worker has the job, and Postgres refuses writes from here. Cancelling frees a place. If this process did not
  // stand still, Redis was away for longer than the lock, and the job is not at fault.
  worker.on("lockRenewalFailed", (jobs) => {
    for (const job of jobs) worker.cancelJob(job, stoodStillLately() ? LOCK_LOST : "redis_away");
  });
  const missed = createMissedJobs(() => !gate.isPaused());
  worker.on("failed", (job, error) => {
    const known = faultOf(error instanceof UnrecoverableError ? error.cause : error);
    const code = known?.code ?? "failed";
    log.warn(
      { job: job?.id, name: job?.name, attempt: job?.attemptsMade, code, reason: error.message },
      "job failed",
    );
    watcher.onFailed({ job: job?.name ?? "", code });
    if (job !== undefined && stopsWrites(code)) missed.add(job);
  });
  // Control jobs check the gate themselves.
  const pauses = kind === "fetch" ? [clockOff, gate] : [clockOff];
  const follow = () => {
    if (pauses.some((pause) => pause.isPaused())) void worker.pause(true);
    else void worker.resume();
  };
  for (const pause of pauses) pause.onChange(follow);
  gate.onChange(missed.retry);
  follow();
  return () => worker.closeWith(connection).finally(() => connection.disconnect());
}

/**
 * Keeps jobs that used up their attempts while Postgres could not write, one of each name. They are retried when Postgres
 * writes again, because schedules repeat them rarely.
 */
function createMissedJobs(canRetry: () => boolean) {
  const jobs = new Map<string, Job>();
  const retry = () => {
    if (!canRetry()) return;
    for (const job of jobs.values()) {
      // If Redis is away, the schedule repeats the job.
      job.retry("failed", { resetAttemptsMade: true }).catch(() => {});
    }
    jobs.clear();
  };
  return {
    retry,
    add: (job: Job) => {
      const { attempts = 1 } = job.opts;
      if (attempts === 1 || job.attemptsMade < attempts) return;
      jobs.set(`${job.name} ${JSON.stringify(job.data)}`, job);
      retry();
    },
  };
}

interface JobWatcher {
  readonly onTaken: () => void;
  /** Called when the control queue responds: at least every 10 s while a worker has a free place. */
  readonly onResponse: () => void;
  readonly onWork: (queue: "control" | "fetch") => () => void;
  readonly onDone: (done: { job: string; seconds: number; counts: JobCounts }) => void;
  readonly onFailed: (failed: { job: string; code: string }) => void;
}

export function createHandler(
  context: JobContext,
  { onTaken, onWork, onDone }: Omit<JobWatcher, "onFailed" | "onResponse">,
  jobs: Jobs,
) {
  const running = new Map<string, number>();
  const count = (name: string, by: number) => running.set(name, (running.get(name) ?? 0) + by);
  return async (job: Job, token?: string, cancelled?: AbortSignal) => {
    onTaken();
    const definition = jobs.get(job.name);
    if (definition === undefined) throw unusable("job_unknown", `This release has no job ${job.name}.`);
    const payload = definition.payload.safeParse(job.data);
    if (!payload.success) {
      const problem = payload.error.issues[0];
      const where = `${job.name} ${problem?.path.join(".")}`;
      throw unusable("job_data_invalid", `${where} ${problem?.message}.`);
    }
    if (definition.queue === "control" && (running.get(job.name) ?? 0) >= MOST_OF_A_KIND) {
      await job.moveToDelayed(context.clock.now() + REQUEST_AGAIN_MS * (0.5 + Math.random() / 2), token);
      throw new DelayedError();
    }
    const log = context.log.child({ job: job.id, name: job.name });
    const startedAt = context.clock.now();
    const { signal, release } = eitherOf(context.signal, cancelled);
    const ended = onWork(definition.queue);
    count(job.name, 1);
    try {
      const counts = await definition.handle({ ...context, log, signal }, payload.data, job);
      const ms = context.clock.now() - startedAt;
      const isIdle = definition.isFrequent === true && Object.values(counts).every((count) => count === 0);
      log[isIdle ? "debug" : "info"]({ ms, ...counts }, "job");
      onDone({ job: job.name, seconds: ms / 1000, counts });
      return counts;
    } catch (error) {
      if (cancelled?.aborted === true) throw lockLost();
      const isStoreAway = context.gate.note(error);
      const goesBack = context.signal.aborted || (isStoreAway && definition.queue === "fetch");
      if (!goesBack) throw isOfQueue(error) ? error : (faultOf(error) ?? error);
      // The process is ending, or Postgres cannot write. The job returns to the queue and uses no attempt.
      await job.moveToWait(token);
      throw new WaitingError();
    } finally {
      count(job.name, -1);
      release();
      ended();
    }
  };
}

/** BullMQ's own errors decide what happens to the job. */
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

/** `AbortSignal.any` would leave one listener for each job on the signal of the process, which lives for months. */
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

const LOOK_EVERY_MS = 1_000;
/** Shorter standstills lose no lock. */
const LONG_MS = 10_000;
/** A lost lock is noticed within this time. */
const LATELY_MS = 60_000;

function watchStandstills() {
  let lookedAt = performance.now();
  let stoodAt = Number.NEGATIVE_INFINITY;
  const timer = setInterval(() => {
    const now = performance.now();
    if (now - lookedAt > LONG_MS) stoodAt = now;
    lookedAt = now;
  }, LOOK_EVERY_MS).unref();
  return {
    stoodStillLately: () => performance.now() - stoodAt < LATELY_MS,
    close: () => clearInterval(timer),
  };
}

export const LOOK_AT_QUEUE_MS = 20_000;
