import type { Queue, Telemetry } from "bullmq";
import type { Redis } from "ioredis";
import type { JobContext } from "../../jobs/job.ts";
import { fetchQueueOf, openQueue, producerConnection, workerConnection } from "../../jobs/queues.ts";
import { createRequestLimit } from "../../jobs/request-limit.ts";
import { keepSchedules, schedulesOf } from "../../jobs/schedule.ts";
import { startWorkers } from "../../jobs/workers.ts";
import { systemClock } from "../clock.ts";
import { type Config, requireSources, type SourceConfig } from "../config/config.ts";
import { DAY_MS, HOUR_MS } from "../domain/time/stride.ts";
import { EtlError } from "../errors.ts";
import { type Logger, sparingly, type WarnSparingly } from "../log.ts";
import { sharesOf } from "../pipeline/source/rate-shares.ts";
import { createSourceHandle, withinQueue } from "../pipeline/source/source-handle.ts";
import { knownSyncBudget } from "../pipeline/sync/sync-budget.ts";
import { billingClientOf, deploymentClientsOf } from "../platform/clients.ts";
import type { Store } from "../store/db/database.ts";
import { createMetrics } from "./http/metrics.ts";
import { startDashboard } from "./http/server.ts";

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

/** How often a request of a control job is tried: the job comes again by schedule. */
const CONTROL_ATTEMPTS = 4;

/** Rounds, and in any case how long, without a load until the webhook is told. */
const STALE_AFTER_ROUNDS = 4;
const STALE_AFTER_MS = 3_600_000;

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
  const countQueues = async () => {
    const counted = everyQueue.map(async (queue) =>
      Object.entries(await queue.getJobCounts()).map(([state, jobs]) => ({ queue: queue.name, state, jobs })),
    );
    return (await Promise.all(counted)).flat();
  };
  const readNeeds = async () => {
    const needs = sources.map(async (source) => {
      const budget = await knownSyncBudget(options.store.db, { config: source, settings: config });
      return budget === undefined ? [] : [{ source: source.slug, ...budget }];
    });
    return (await Promise.all(needs)).flat();
  };
  const metrics = createMetrics(options.store.db, countQueues, readNeeds);

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
    const billing = billingClientOf(source, {
      onAnswer: (status) => metrics.requestSent({ source: source.slug, status }),
    });
    closers.push(() => billing.close());
    const { control, fetch } = queues.get(source.slug) as { control: Queue; fetch: Queue };
    const shares = sharesOf(source.rateLimit);
    const budget = createRequestLimit(producer, {
      slug: source.slug,
      share: shares.control,
      clock: systemClock,
      signal: abort.signal,
    });
    // A 429 is the whole key's, whoever met it.
    const holdBack = async (ms: number) => {
      await Promise.all([fetch.rateLimit(ms), budget.holdBack(ms)]);
    };
    const handle = createSourceHandle(
      {
        store: options.store,
        billing,
        config: source,
        settings: config,
        log: log.child({ source: source.slug }),
        clock: systemClock,
        attempts: CONTROL_ATTEMPTS,
        admit: budget.admit,
        holdBack,
        signal: abort.signal,
      },
      config.syncEveryMs,
    );
    if (role === "all" || role === "scheduler") {
      closers.push(
        await keepSchedules(control, schedulesOf(whenOf(config, source)), log.child({ source: source.slug })),
      );
    }
    if (role === "all" || role === "worker") {
      const context: JobContext = {
        source: handle,
        fetchQueue: fetchQueueOf(fetch),
        userEmail: config.userEmail,
        alerts: {
          slug: source.slug,
          webhookUrl: config.alertWebhookUrl?.reveal(),
          staleAfterMs: Math.max(STALE_AFTER_ROUNDS * config.syncEveryMs, STALE_AFTER_MS),
        },
        probe: probeOf(config, source, closers),
        holdBack,
        log: log.child({ source: source.slug }),
        clock: systemClock,
        signal: abort.signal,
      };
      closers.push(
        startWorkers({
          slug: source.slug,
          contexts: { control: context, fetch: { ...context, source: withinQueue(handle) } },
          limiter: shares.fetch,
          connect: (name) => own(workerConnection(options.redisUrl), name),
          telemetry,
          warn,
          watcher: {
            onTaken: () => {
              lastJobAt = systemClock.now();
            },
            onDone: (done) => metrics.jobDone({ ...done, source: source.slug }),
            onFailed: (failed) => metrics.jobFailed({ ...failed, source: source.slug }),
          },
        }),
      );
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

function watched(queue: Queue, warn: WarnSparingly): Queue {
  queue.on("error", (error) => warn({ code: "redis_unreachable", at: queue.name, reason: error.message }));
  return queue;
}

type When = Parameters<typeof schedulesOf>[0];

/** Durations of the configuration as what the schedules of a source take. */
function whenOf(config: Config, { deploymentUrl, probeProject }: SourceConfig): When {
  const { syncEveryMs, reconcileForMs, keepHistoryMs, hourlyKeepMs, probeEveryMs, alertWebhookUrl } = config;
  const days = (ms: number) => Math.max(1, Math.ceil(ms / DAY_MS));
  const canProbe = deploymentUrl !== undefined && probeProject !== undefined;
  return {
    syncEveryMs,
    reconcileDays: days(reconcileForMs),
    keepDays: days(keepHistoryMs),
    keepHours: hourlyKeepMs === undefined ? undefined : Math.ceil(hourlyKeepMs / HOUR_MS),
    hasWebhook: alertWebhookUrl !== undefined,
    probeEveryMs: canProbe ? probeEveryMs : undefined,
  };
}

/** What a source's probe talks to, closed with the rest; undefined where it is not configured. */
function probeOf(config: Config, source: SourceConfig, closers: (() => Promise<unknown>)[]) {
  const { deploymentUrl, probeProject: project } = source;
  if (deploymentUrl === undefined || project === undefined) return undefined;
  const deployment = deploymentClientsOf(source);
  closers.push(() => deployment.close());
  return { deployment, project, assistantId: config.probeAssistant, withinMs: config.probeWithinMs };
}
