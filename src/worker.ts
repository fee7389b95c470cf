import { type Job, type Queue, WaitingError, Worker } from "bullmq";
import type { Redis } from "ioredis";
import type { JobContext, SourceHandle } from "../jobs/job.ts";
import {
  fetchQueueOf,
  openQueue,
  PREFIX,
  producerConnection,
  queueName,
  workerConnection,
} from "../jobs/queues.ts";
import { JOBS } from "../jobs/registry.ts";
import { restoreSchedules, schedulesOf } from "../jobs/schedule.ts";
import { systemClock } from "./clock.ts";
import { type Config, requireSources, type SourceConfig } from "./config.ts";
import { createMetrics, type Metrics } from "./dashboard/metrics.ts";
import { startDashboard } from "./dashboard/server.ts";
import { DAY_MS } from "./domain/stride.ts";
import { EtlError } from "./errors.ts";
import type { Logger } from "./log.ts";
import { pauseOf } from "./pipeline/retry.ts";
import {
  type EnteredSource,
  enterSource,
  isRefusedLately,
  type OpenSource,
  openSource,
  type SourceDeps,
} from "./pipeline/source.ts";
import { createBillingClient } from "./platform/billing.ts";
import { createPlatformHttp } from "./platform/http.ts";
import type { Store } from "./store/database.ts";

export type Role = "all" | "scheduler" | "worker" | "http";

interface ServeOptions {
  readonly config: Config;
  readonly store: Store;
  readonly redisUrl: string;
  readonly role: Role;
  readonly log: Logger;
}

/** The service as it runs in this process. */
export interface Service {
  /** Where `/livez`, `/readyz` and `/metrics` are served. */
  readonly url: string;
  /** Stops taking, aborts what is under way so that it is handed back, closes. */
  close(): Promise<void>;
}

/** Requests of one source that this process has under way at most; the budget is the limiter's. */
const FETCH_CONCURRENCY = 4;
/** How often the scheduler looks whether its schedules still stand in Redis. */
const RESTORE_EVERY_MS = 20_000;

/** Starts the roles of the service in this process. Whatever it starts, its `close` ends, last first. */
export async function serve(options: ServeOptions): Promise<Service> {
  const { config, log, role } = options;
  const closers: (() => Promise<unknown>)[] = [];
  const abort = new AbortController();
  const startedAt = systemClock.now();
  let draining = false;
  let lastJobAt: number | undefined;
  const metrics = createMetrics(options.store.db);

  const producer = producerConnection(options.redisUrl);
  const own = (connection: Redis, name: string) => {
    connection.on("error", (error) =>
      log.warn({ code: "redis_unreachable", connection: name, reason: error.message }, "redis"),
    );
    closers.push(async () => connection.disconnect());
    return connection;
  };
  own(producer, "producer");

  for (const source of requireSources(config)) {
    const directory = createDirectory(options, source, abort.signal);
    closers.push(directory.close);
    const control = watched(openQueue("control", source.slug, producer), log);
    const fetch = watched(openQueue("fetch", source.slug, producer), log);
    closers.push(
      () => control.close(),
      () => fetch.close(),
    );
    if (role === "all" || role === "scheduler") {
      closers.push(await keepSchedules(control, config, log.child({ source: source.slug })));
    }
    if (role === "all" || role === "worker") {
      const context: JobContext = {
        source: directory,
        fetchQueue: fetchQueueOf(fetch),
        holdBack: (ms) => fetch.rateLimit(ms),
        log: log.child({ source: source.slug }),
        clock: systemClock,
        signal: abort.signal,
      };
      const handle = handler(context, {
        slug: source.slug,
        metrics,
        onTaken: () => {
          lastJobAt = systemClock.now();
        },
      });
      for (const kind of ["control", "fetch"] as const) {
        const worker = new Worker(queueName(kind, source.slug), handle, {
          connection: own(workerConnection(options.redisUrl), `${kind} worker`),
          prefix: PREFIX,
          concurrency: FETCH_CONCURRENCY,
          lockDuration: 30_000,
          stalledInterval: 5_000,
          maxStalledCount: 20,
          ...(kind === "fetch" ? { limiter: { max: source.rateLimit, duration: 10_000 } } : {}),
          settings: {
            backoffStrategy: (attempts, _type, error) =>
              error instanceof EtlError ? pauseOf(error, attempts) : 1000 * 2 ** Math.min(attempts, 8),
          },
        });
        worker.on("error", (error) =>
          log.warn({ code: "worker_error", queue: worker.name, reason: error.message }, "worker"),
        );
        worker.on("failed", (job, error) => {
          const code = error instanceof EtlError ? error.code : "failed";
          log.warn(
            { job: job?.id, name: job?.name, attempt: job?.attemptsMade, code, reason: error.message },
            "job failed",
          );
          metrics.jobFailed({ job: job?.name ?? "", source: source.slug, code });
        });
        // Waits for what is under way, which the aborted signal hands back at once.
        closers.push(() => worker.close());
      }
    }
  }
  const state = {
    startedAt,
    takesJobs: role === "all" || role === "worker",
    lastJobAt: () => lastJobAt,
    get draining() {
      return draining;
    },
    redisTime: async () => {
      const [seconds, microseconds] = await producer.time();
      return Number(seconds) * 1000 + Number(microseconds) / 1000;
    },
  };
  const { httpHost: host, httpPort: port } = config;
  const dashboard = await startDashboard({
    host,
    port,
    state,
    reader: options.store.db,
    metrics,
    clock: systemClock,
  });
  closers.push(dashboard.close);
  return {
    url: dashboard.url,
    close: async () => {
      draining = true;
      abort.abort(
        new EtlError({ code: "draining", message: "The process ends.", next: "Another one goes on." }),
      );
      for (const close of closers.reverse()) await close().catch(() => {});
    },
  };
}

function watched(queue: Queue, log: Logger): Queue {
  queue.on("error", (error) =>
    log.warn({ code: "queue_error", queue: queue.name, reason: error.message }, "queue"),
  );
  return queue;
}

/** Durations of the configuration as what the schedules take. */
function whenOf({ syncEveryMs, reconcileForMs, keepHistoryMs }: Config): Parameters<typeof schedulesOf>[0] {
  const days = (ms: number) => Math.max(1, Math.ceil(ms / DAY_MS));
  return { syncEveryMs, reconcileDays: days(reconcileForMs), keepDays: days(keepHistoryMs) };
}

/** Looks at the schedules now and then: a Redis that lost everything gets them back. */
async function keepSchedules(control: Queue, config: Config, log: Logger): Promise<() => Promise<void>> {
  const restore = async () => {
    try {
      const { restored, removed } = await restoreSchedules(control, schedulesOf(whenOf(config)));
      if (restored + removed > 0) log.info({ restored, removed }, "schedules");
    } catch (error) {
      log.warn({ code: "schedules_unrestored", reason: (error as Error).message }, "schedules");
    }
  };
  await restore();
  const timer = setInterval(() => void restore(), RESTORE_EVERY_MS);
  return async () => clearInterval(timer);
}

function handler(
  context: JobContext,
  { slug, metrics, onTaken }: { slug: string; metrics: Metrics; onTaken: () => void },
) {
  return async (job: Job, token?: string) => {
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
    try {
      const counts = await definition.handle({ ...context, log }, payload.data, job);
      const ms = context.clock.now() - startedAt;
      log.info({ ms, ...counts }, "job");
      metrics.jobDone({ job: job.name, source: slug, seconds: ms / 1000, counts });
      return counts;
    } catch (error) {
      if (!context.signal.aborted) throw error;
      // The process ends: another one takes it, and no attempt is used.
      await job.moveToWait(token);
      throw new WaitingError();
    }
  };
}

/** One source in this process: entered once, contacted anew for every round. */
function createDirectory(
  { config, store, log }: ServeOptions,
  source: SourceConfig,
  signal: AbortSignal,
): SourceHandle & { close: () => Promise<void> } {
  const { baseUrl, apiKey, organizationId } = source;
  const billing = createBillingClient(
    createPlatformHttp({
      baseUrl,
      apiKey: apiKey.reveal(),
      ...(organizationId === undefined ? {} : { organizationId }),
    }),
  );
  const deps: SourceDeps = {
    store,
    billing,
    config: source,
    settings: config,
    log: log.child({ source: source.slug }),
    clock: systemClock,
    // The queue tries again, and its limiter is the budget.
    attempts: 1,
    admit: async () => {},
    signal,
  };
  let entered: Promise<EnteredSource> | undefined;
  let open: { source: Promise<OpenSource>; at: number } | undefined;
  const known = () => {
    entered ??= retryable(enterSource(deps), () => {
      entered = undefined;
    });
    return entered;
  };
  const contact = () => {
    open = {
      at: Date.now(),
      source: retryable(openSource(deps), () => {
        open = undefined;
      }),
    };
    return open.source;
  };
  return {
    known,
    open: async () =>
      open !== undefined && Date.now() - open.at < config.syncEveryMs ? open.source : contact(),
    openForRound: async () => ((await isRefusedLately(await known())) ? undefined : contact()),
    close: () => billing.close(),
  };
}

/** A kept promise that failed would fail for ever. */
function retryable<T>(promise: Promise<T>, forget: () => void): Promise<T> {
  promise.catch(forget);
  return promise;
}
