import { type Job, type Queue, type Telemetry, WaitingError, Worker } from "bullmq";
import type { Redis } from "ioredis";
import type { JobContext } from "../jobs/job.ts";
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
import { type Config, requireSources } from "./config.ts";
import { createMetrics, type Metrics } from "./dashboard/metrics.ts";
import { startDashboard } from "./dashboard/server.ts";
import { DAY_MS } from "./domain/stride.ts";
import { EtlError } from "./errors.ts";
import type { Logger } from "./log.ts";
import { pauseOf } from "./pipeline/retry.ts";
import { createSourceHandle } from "./pipeline/source-handle.ts";
import { billingClientOf } from "./platform/source-client.ts";
import type { Store } from "./store/database.ts";

export type Role = "all" | "scheduler" | "worker" | "http";

interface ServeOptions {
  readonly config: Config;
  readonly store: Store;
  readonly redisUrl: string;
  readonly role: Role;
  readonly log: Logger;
  /** Awaited once the pages are served and before any work begins: a start may come before its servers. */
  readonly untilReady?: () => Promise<void>;
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

const SAY_AGAIN_AFTER_MS = 30_000;

/** Starts the roles of the service in this process. Whatever it starts, its `close` ends, last first. */
export async function serve(options: ServeOptions): Promise<Service> {
  const { config, log, role, untilReady = async () => {} } = options;
  const sources = requireSources(config);
  const closers: (() => Promise<unknown>)[] = [];
  const abort = new AbortController();
  let startedAt = systemClock.now();
  let [draining, working] = [false, false];
  let lastJobAt: number | undefined;

  const warn = sparingly(log);
  const producer = producerConnection(options.redisUrl);
  const own = (connection: Redis, name: string) => {
    connection.on("error", (error) => warn({ code: "redis_unreachable", at: name, reason: error.message }));
    closers.push(async () => connection.disconnect());
    return connection;
  };
  own(producer, "producer");
  const telemetry = config.telemetry ? { telemetry: await openTelemetry() } : {};
  const queues = new Map(
    sources.map(({ slug }) => [
      slug,
      {
        control: watched(openQueue("control", slug, producer, telemetry), warn),
        fetch: watched(openQueue("fetch", slug, producer, telemetry), warn),
      },
    ]),
  );
  const everyQueue = [...queues.values()].flatMap(({ control, fetch }) => [control, fetch]);
  closers.push(() => Promise.all(everyQueue.map((queue) => queue.close())));
  const metrics = createMetrics(options.store.db, async () => {
    const counted = everyQueue.map(async (queue) =>
      Object.entries(await queue.getJobCounts()).map(([state, jobs]) => ({ queue: queue.name, state, jobs })),
    );
    return (await Promise.all(counted)).flat();
  });

  const state = {
    get startedAt() {
      return startedAt;
    },
    get takesJobs() {
      return working && (role === "all" || role === "worker");
    },
    lastJobAt: () => lastJobAt,
    get draining() {
      return draining;
    },
    redisTime: async () => {
      const [seconds, microseconds] = await producer.time();
      return Number(seconds) * 1000 + Number(microseconds) / 1000;
    },
  };
  const { httpHost: host, httpPort: port, bullBoardToken } = config;
  const board =
    bullBoardToken === undefined ? {} : { board: { token: bullBoardToken.reveal(), queues: everyQueue } };
  const { db: reader } = options.store;
  const dashboard = await startDashboard({
    host,
    port,
    state,
    reader,
    metrics,
    clock: systemClock,
    ...board,
  });
  closers.push(dashboard.close);
  const close = async () => {
    draining = true;
    abort.abort(
      new EtlError({ code: "draining", message: "The process ends.", next: "Another one goes on." }),
    );
    for (const end of closers.reverse()) await end().catch(() => {});
  };
  await untilReady().catch(async (error) => {
    await close();
    throw error;
  });

  for (const source of sources) {
    const billing = billingClientOf(source);
    closers.push(() => billing.close());
    const handle = createSourceHandle(
      {
        store: options.store,
        billing,
        config: source,
        settings: config,
        log: log.child({ source: source.slug }),
        clock: systemClock,
        // The queue tries again, and its limiter is the budget.
        attempts: 1,
        admit: async () => {},
        signal: abort.signal,
      },
      config.syncEveryMs,
    );
    const { control, fetch } = queues.get(source.slug) as { control: Queue; fetch: Queue };
    if (role === "all" || role === "scheduler") {
      closers.push(await keepSchedules(control, config, log.child({ source: source.slug })));
    }
    if (role === "all" || role === "worker") {
      const context: JobContext = {
        source: handle,
        fetchQueue: fetchQueueOf(fetch),
        userEmail: config.userEmail,
        holdBack: (ms) => fetch.rateLimit(ms),
        log: log.child({ source: source.slug }),
        clock: systemClock,
        signal: abort.signal,
      };
      const work = handler(context, {
        slug: source.slug,
        metrics,
        onTaken: () => {
          lastJobAt = systemClock.now();
        },
      });
      for (const kind of ["control", "fetch"] as const) {
        const worker = new Worker(queueName(kind, source.slug), work, {
          connection: own(workerConnection(options.redisUrl), `${kind} worker`),
          prefix: PREFIX,
          concurrency: FETCH_CONCURRENCY,
          ...telemetry,
          lockDuration: 30_000,
          stalledInterval: 5_000,
          maxStalledCount: 20,
          ...(kind === "fetch" ? { limiter: { max: source.rateLimit, duration: 10_000 } } : {}),
          settings: {
            backoffStrategy: (attempts, _type, error) =>
              error instanceof EtlError ? pauseOf(error, attempts) : 1000 * 2 ** Math.min(attempts, 8),
          },
        });
        worker.on("error", (error) => warn({ code: "worker_error", at: worker.name, reason: error.message }));
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
  working = true;
  startedAt = systemClock.now();
  return { url: dashboard.url, close };
}

/** Spans of queues and workers, for the OpenTelemetry SDK that the process was started with. */
async function openTelemetry(): Promise<Telemetry> {
  const { BullMQOtel } = await import("bullmq-otel");
  return new BullMQOtel({ tracerName: "usage-etl" });
}

type Warn = (about: { code: string; at: string; reason: string }) => void;

/** Says the same thing once in 30 s: a Redis that is away or demoted raises thousands of errors a second. */
function sparingly(log: Logger): Warn {
  const saidAt = new Map<string, number>();
  return (about) => {
    const now = systemClock.now();
    if (now - (saidAt.get(about.code) ?? 0) < SAY_AGAIN_AFTER_MS) return;
    saidAt.set(about.code, now);
    log.warn(about, "connection");
  };
}

function watched(queue: Queue, warn: Warn): Queue {
  queue.on("error", (error) => warn({ code: "redis_unreachable", at: queue.name, reason: error.message }));
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
