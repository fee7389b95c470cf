import "../src/validation.ts";
import {
  DelayedError,
  type Job,
  RateLimitError,
  type Telemetry,
  UnrecoverableError,
  WaitingError,
  Worker,
} from "bullmq";
import { EtlError } from "../src/errors.ts";
import { faultOf, stopsWrites } from "../src/faults.ts";
import type { Warn } from "../src/log.ts";
import { LOCK_LOST } from "../src/pipeline/extract/work-task.ts";
import type { Share } from "../src/pipeline/source/limit-shares.ts";
import { pauseOf } from "../src/pipeline/source/retries.ts";
import type { RedisConnection } from "../src/redis-connect.ts";
import { returnPlace } from "./control-request-limit.ts";
import type { Hold } from "./holds.ts";
import type { JobContext, JobCounts } from "./job.ts";
import { type QueueKind, queueName } from "./queues.ts";
import { JOBS } from "./schedule.ts";

/** Jobs of one queue that run at once; the limiter decides how many requests they send. */
const CONCURRENCY = 4;
/** Control jobs of one kind that run at once: whatever holds a kind, others find a place. */
const MOST_OF_A_KIND = 2;
/** When a job of such a kind asks for a place again. */
const ASK_AGAIN_MS = 10_000;

/** A job that nobody renews for so long is another worker's, once a check has seen it. */
const LOCK_MS = 30_000;
/** How often a worker checks for such jobs: a sync whose worker died waits for it too. */
const STALLED_CHECK_MS = 5_000;
/** How long a worker waits for a job before it looks whether one is there: less than its socket may be silent. */
const WAIT_FOR_JOB_S = 10;
/** How long a worker whose connection broke waits before it asks for the next job. BullMQ's default is 15 s. */
const RETRY_MS = 1_000;
/**
 * How long a closing worker waits for a Redis that does not answer to take the ends of its jobs. Without them, the queue gives such a
 * job to another worker once its lock has ended. That one finds a fetch task done or handed back, and does any other job again.
 */
const CLOSE_WITHOUT_REDIS_MS = 10_000;
const ASK_REDIS_EVERY_MS = 1_000;

interface WorkersInput {
  readonly slug: string;
  readonly contexts: Readonly<Record<QueueKind, JobContext>>;
  /** Of the fetch queue. */
  readonly limiter: Share;
  /** While it holds, no worker takes a job. */
  readonly clockOff: Hold;
  /** Opens a connection, which the workers close; a worker needs one of its own. */
  readonly connect: (name: string) => RedisConnection;
  readonly prefix: string;
  readonly telemetry: { readonly telemetry?: Telemetry };
  readonly warn: Warn;
  readonly watcher: JobWatcher;
}

class ServiceWorker extends Worker {
  /** Called with each answer of the queue, a job or none: the sign that the worker's loop goes round. */
  onAnswer = (): void => {};

  protected override async moveToActive(token: string, name?: string) {
    const job = await super.moveToActive(token, name);
    this.onAnswer();
    return job;
  }

  /** Waits for running jobs, as long as Redis answers: it has to take their ends. */
  async closeWith(connection: RedisConnection): Promise<void> {
    let answeredAt = performance.now();
    const { promise: redisIsAway, resolve: giveUp } = Promise.withResolvers<void>();
    const asking = setInterval(() => {
      connection.ping().then(
        () => {
          answeredAt = performance.now();
        },
        () => {},
      );
      if (performance.now() - answeredAt > CLOSE_WITHOUT_REDIS_MS) giveUp();
    }, ASK_REDIS_EVERY_MS);
    // BullMQ waits for the end of a connection, which ioredis does not report while it waits to connect again. What follows is the rest
    // of `close`, and does nothing after it.
    await Promise.race([this.close(), redisIsAway]).finally(() => clearInterval(asking));
    await this.lockManager.close();
    await this.backend.close(true);
  }
}

/** Takes jobs from both queues of a source. The closer waits for running jobs: abort their signal before. */
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
  const handle = createHandler(contexts[kind], watcher);
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
  if (kind === "control") worker.onAnswer = watcher.onAnswer;
  worker.on("error", (error) => {
    // Only Redis fails here; a refused connection does not say whose it was.
    const { code = "" } = faultOf(error) ?? {};
    const named = code.startsWith("redis") ? code : "worker_error";
    warn({ code: named, at: worker.name, reason: error.message });
  });
  // Another worker has this job. Cancelling frees its place here; Postgres refuses its writes in any case. Where this
  // process did not stand still, Redis was away for longer than locks last: that is no fault of the job.
  worker.on("lockRenewalFailed", (jobs) => {
    for (const job of jobs) worker.cancelJob(job, stoodStillLately() ? LOCK_LOST : "redis_away");
  });
  const missed = createMissedJobs(() => !gate.isHeld());
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
  // Control jobs find out by themselves whether the store writes.
  const holds = kind === "fetch" ? [clockOff, gate] : [clockOff];
  const follow = () => {
    if (holds.some((hold) => hold.isHeld())) void worker.pause(true);
    else void worker.resume();
  };
  for (const hold of holds) hold.onChange(follow);
  gate.onChange(missed.retry);
  follow();
  return () => worker.closeWith(connection).finally(() => connection.disconnect());
}

/**
 * Jobs whose attempts the store's absence used up, one of each kind. Their schedule repeats them rarely, so they are done
 * as soon as the store writes again. Jobs of one attempt are repeated within seconds.
 */
function createMissedJobs(canRetry: () => boolean) {
  const jobs = new Map<string, Job>();
  const retry = () => {
    if (!canRetry()) return;
    for (const job of jobs.values()) {
      // Without Redis its schedule has to do.
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

/** Is called when a worker takes and finishes jobs. */
interface JobWatcher {
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
  const running = new Map<string, number>();
  const count = (name: string, by: number) => running.set(name, (running.get(name) ?? 0) + by);
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
    if (definition.queue === "control" && (running.get(job.name) ?? 0) >= MOST_OF_A_KIND) {
      await job.moveToDelayed(context.clock.now() + ASK_AGAIN_MS * (0.5 + Math.random() / 2), token);
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
      count(job.name, -1);
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

const LOOK_EVERY_MS = 1_000;
/** Shorter standstills lose no lock. */
const LONG_MS = 10_000;
/** A lock that is lost is noticed that late at most. */
const LATELY_MS = 60_000;

/** Notices that this process stood still: that it was stopped, or that something blocked its event loop. */
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

/** How often a process looks whether fetch tasks wait. */
export const LOOK_AT_QUEUE_MS = 20_000;
