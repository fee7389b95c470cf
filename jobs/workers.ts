import { type Job, type Telemetry, UnrecoverableError, Worker } from "bullmq";
import { faultOf, stopsWrites } from "../src/faults.ts";
import type { Warn } from "../src/log.ts";
import { LOCK_LOST } from "../src/pipeline/extract/work-task.ts";
import { pauseOf, type Share } from "../src/pipeline/source/pace.ts";
import type { RedisConnection } from "../src/redis-connect.ts";
import { createHandler, type JobWatcher } from "./handler.ts";
import type { Hold } from "./hold.ts";
import type { JobContext } from "./job.ts";
import { type QueueKind, queueName } from "./queues.ts";
import { watchStandstills } from "./standstill.ts";

/** Jobs of one queue that run at once; the limiter decides how many requests they send. */
const CONCURRENCY = 4;

/** A job that nobody renews for so long is another worker's, once a check has seen it. */
const LOCK_MS = 30_000;
/** How often a worker checks for such jobs: a sync whose worker died waits for it too. */
export const STALLED_CHECK_MS = 5_000;
/** How long a worker waits for a job before it looks whether one is there: less than its socket may be silent. */
export const WAIT_FOR_JOB_S = 10;
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
    const asking = setInterval(() => {
      connection.ping().then(
        () => {
          answeredAt = performance.now();
        },
        () => {},
      );
      // Whatever waits for Redis is rejected. BullMQ may connect once more meanwhile, so this is repeated.
      if (performance.now() - answeredAt > CLOSE_WITHOUT_REDIS_MS) this.backend.disconnect().catch(() => {});
    }, ASK_REDIS_EVERY_MS);
    await this.close().finally(() => clearInterval(asking));
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
  const worker = new ServiceWorker(queueName(kind, slug), createHandler(contexts[kind], watcher), {
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
