import type { Queue } from "bullmq";
import { createRequestLimit } from "../../../jobs/control-request-limit.ts";
import { enqueueSoon } from "../../../jobs/enqueue.ts";
import type { JobContext } from "../../../jobs/job.ts";
import { createStoreGate, type Pause } from "../../../jobs/pause-jobs.ts";
import { fetchQueueOf } from "../../../jobs/queues.ts";
import { type Jobs, jobsOf, keepSchedules, schedulesOf } from "../../../jobs/schedule.ts";
import { syncJob } from "../../../jobs/sync.ts";
import { LOOK_AT_QUEUE_MS, startWorkers } from "../../../jobs/workers.ts";
import { type Clock, systemClock } from "../../core/base/clock.ts";
import type { Config, SourceConfig } from "../../core/base/config.ts";
import type { Logger, Warn } from "../../core/base/log.ts";
import type { Secret } from "../../core/base/secret.ts";
import { sharesOf } from "../../core/pipeline/source/limit-shares.ts";
import { createSourceHandle, withinQueue } from "../../core/pipeline/source/source-handle.ts";
import { billingClientOf } from "../../core/platform/clients.ts";
import type { Store } from "../../core/store/db/database.ts";
import { tryWrite } from "../../core/store/work/fetch-ledger.ts";
import type { ProcessState } from "../../web/health.ts";
import type { Metrics } from "../../web/metrics.ts";
import type { ServiceQueues } from "./queues.ts";
import { featureJobs } from "./registered.ts";

export async function startSource(
  source: SourceConfig,
  shared: Shared,
  does: { readonly schedules: boolean; readonly works: boolean },
): Promise<void> {
  const { config, queues, clockOff, defer } = shared;
  const log = shared.log.child({ source: source.slug });
  const { control } = queues.of(source.slug);
  const features = await featureJobs(config, source.slug);
  const limited = openLimited(source, { ...shared, log });
  defer(limited.close);
  if (does.schedules) {
    const connection = queues.producer;
    defer(await keepSchedules(control, schedulesOf(config, features), { connection, log, clockOff }));
  }
  shared.onSecretChange(source.apiKey, () => {
    // If this fails, the next scheduled sync resumes the source.
    resume(limited, control).catch(() => {});
  });
  if (does.works) defer(startWork(source, limited, { ...shared, log, jobs: jobsOf(features) }));
}

/** Starts a sync with the changed key, because a refused key had stopped the source. */
async function resume({ handle }: LimitedSource, control: Queue): Promise<void> {
  await handle.known();
  await control.add(syncJob.name, {}, { ...syncJob.options, jobId: `key-${Date.now()}` });
}

export interface Shared {
  readonly config: Config;
  readonly store: Store;
  readonly queues: ServiceQueues;
  readonly metrics: Metrics;
  readonly state: ProcessState;
  /** Paused while this host's clock is off: no job is taken, no schedule written. */
  readonly clockOff: Pause;
  readonly onSecretChange: (secret: Secret, listener: () => void) => void;
  readonly defer: (close: () => Promise<void> | void) => void;
  readonly log: Logger;
  readonly warn: Warn;
  readonly signal: AbortSignal;
}

type LimitedSource = ReturnType<typeof openLimited>;

/** Attempts of each request of a control job. Few are enough, because the schedule repeats the job. */
const CONTROL_ATTEMPTS = 4;

function openLimited(source: SourceConfig, shared: Shared) {
  const { config, store, queues, metrics, state, log, signal } = shared;
  const { slug } = source;
  const shares = sharesOf(source.rateLimit);
  const limit = createRequestLimit(queues.producer, {
    slug,
    share: shares.control,
    clock: systemClock,
    signal,
    prefix: queues.prefix,
  });
  // Stops fetches and control jobs on all hosts, because the platform limits the key.
  const holdBack = async (requested: number) => {
    // Redis refuses an expiry of 0, which is what `Retry-After: 0` asks for.
    const ms = Math.max(1, Math.ceil(requested));
    await Promise.all([queues.of(slug).fetch.rateLimit(ms), limit.holdBack(ms)]);
  };
  const gate = createStoreGate({ tryWrite: () => tryWrite(store), clock: systemClock, log, signal });
  state.storeFaults.set(slug, () => gate.fault()?.message);
  const billing = billingClientOf(source, {
    onResponse: (status) => metrics.requestSent({ source: slug, status }),
  });
  const handle = createSourceHandle(
    {
      store,
      billing,
      config: source,
      settings: config,
      log,
      clock: systemClock,
      attempts: CONTROL_ATTEMPTS,
      admit: limit.admit,
      // One wrong id must not stop the loads of other workspaces.
      leavesOutUnshown: true,
      holdBack,
      gate,
      signal,
    },
    config.syncEveryMs,
  );
  return { handle, fetchShare: shares.fetch, gate, holdBack, close: () => billing.close() };
}

function startWork(
  source: SourceConfig,
  { handle, fetchShare, gate, holdBack }: LimitedSource,
  { config, queues, metrics, state, clockOff, jobs, log, warn, signal }: Shared & { readonly jobs: Jobs },
): () => Promise<void> {
  const { slug } = source;
  const progress = createFetchProgress(systemClock);
  const stopWatching = watchQueue(
    queues.of(slug).fetch,
    progress,
    () => gate.isPaused() || clockOff.isPaused(),
  );
  state.fetching.set(slug, progress);
  const context: JobContext = {
    source: handle,
    fetchQueue: fetchQueueOf(queues.of(slug).fetch),
    enqueueSoon: () => enqueueSoon(queues.of(slug).control),
    userEmail: config.userEmail,
    gate,
    holdBack,
    log,
    clock: systemClock,
    signal,
  };
  const noteAlive = () => {
    state.lastJobAt = systemClock.now();
  };
  const closeWorkers = startWorkers({
    jobs,
    slug,
    contexts: { control: context, fetch: { ...context, source: withinQueue(handle) } },
    limiter: fetchShare,
    clockOff,
    connect: queues.connectWorker,
    prefix: queues.prefix,
    telemetry: queues.telemetry,
    warn,
    watcher: {
      onTaken: noteAlive,
      onResponse: noteAlive,
      onWork: (queue) => (queue === "fetch" ? progress.begin() : () => {}),
      onDone: (done) => metrics.jobDone({ ...done, source: slug }),
      onFailed: (failed) => metrics.jobFailed({ ...failed, source: slug }),
    },
  });
  return () => {
    stopWatching();
    return closeWorkers();
  };
}

/**
 * Tells whether this process makes progress with the fetch tasks of a source. Each job that begins or ends is progress,
 * even if the platform is down, refuses the key or limits requests.
 */
export interface FetchProgress {
  readonly begin: () => () => void;
  readonly noteWaiting: (isWaiting: boolean) => void;
  /** Time without progress although a task is due, in ms; 0 if no task is due. */
  readonly standsStillMs: () => number;
}

export function createFetchProgress({ now }: Pick<Clock, "now">): FetchProgress {
  let running = 0;
  let isWaiting = false;
  let movedAt = now();
  const isDue = () => running > 0 || isWaiting;
  return {
    begin: () => {
      running++;
      movedAt = now();
      return () => {
        running--;
        movedAt = now();
      };
    },
    noteWaiting: (waiting) => {
      // The time without progress begins when the first task becomes due.
      if (waiting && !isDue()) movedAt = now();
      isWaiting = waiting;
    },
    standsStillMs: () => (isDue() ? now() - movedAt : 0),
  };
}

/** Reports every 20 s whether jobs wait. They do not count if Redis is away or this process is held back. */
function watchQueue(queue: Queue, { noteWaiting }: FetchProgress, isPaused: () => boolean): () => void {
  const timer = setInterval(() => {
    isFetchWaiting(queue).then(
      (isWaiting) => noteWaiting(isWaiting && !isPaused()),
      () => noteWaiting(false),
    );
  }, LOOK_AT_QUEUE_MS).unref();
  return () => clearInterval(timer);
}

export async function isFetchWaiting(queue: Queue): Promise<boolean> {
  if ((await queue.getJobCountByTypes("waiting", "prioritized")) === 0) return false;
  const [isPaused, limitedForMs] = await Promise.all([queue.isPaused(), queue.getRateLimitTtl()]);
  return !isPaused && limitedForMs <= 0;
}
