import { createRequestLimit } from "../../jobs/request-limit.ts";
import { keepSchedules, schedulesOf } from "../../jobs/schedule.ts";
import { systemClock } from "../clock.ts";
import type { Config, SourceConfig } from "../config/config.ts";
import { DAY_MS, HOUR_MS } from "../domain/time/stride.ts";
import type { Logger, WarnSparingly } from "../log.ts";
import { sharesOf } from "../pipeline/source/rate-shares.ts";
import { createSourceHandle } from "../pipeline/source/source-handle.ts";
import { billingClientOf } from "../platform/clients.ts";
import type { Store } from "../store/db/database.ts";
import type { ProcessState } from "./http/health.ts";
import type { Metrics } from "./http/metrics.ts";
import type { ServiceQueues } from "./queues.ts";
import { startWork } from "./work.ts";

/** What the sources of one process share. */
export interface Shared {
  readonly config: Config;
  readonly store: Store;
  readonly queues: ServiceQueues;
  readonly metrics: Metrics;
  readonly state: ProcessState;
  readonly log: Logger;
  readonly warn: WarnSparingly;
  /** Aborted when the process ends. */
  readonly signal: AbortSignal;
}

/** A source with its request rate limit. */
export type LimitedSource = ReturnType<typeof openLimited>;

/** How often a request of a control job is tried. The schedule repeats the job, so few attempts are enough. */
const CONTROL_ATTEMPTS = 4;

/** Starts what this process does for one source: keeps its schedules, takes its jobs. Returns the closer. */
export async function startSource(
  source: SourceConfig,
  shared: Shared,
  does: { readonly schedules: boolean; readonly works: boolean },
): Promise<() => Promise<void>> {
  const { config, queues } = shared;
  const log = shared.log.child({ source: source.slug });
  const started = new AsyncDisposableStack();
  const limited = openLimited(source, { ...shared, log });
  started.defer(limited.close);
  if (does.schedules) {
    started.defer(await keepSchedules(queues.of(source.slug).control, schedulesFor(config, source), log));
  }
  if (does.works) started.defer(startWork(source, limited, { ...shared, log }));
  return () => started.disposeAsync();
}

function openLimited(source: SourceConfig, shared: Shared) {
  const { config, store, queues, metrics, log, signal } = shared;
  const { slug } = source;
  const shares = sharesOf(source.rateLimit);
  const limit = createRequestLimit(queues.producer, {
    slug,
    share: shares.control,
    clock: systemClock,
    signal,
  });
  // Stops requests on all hosts. The platform limits the key: whoever gets a 429 stops fetches and control jobs alike.
  const holdBack = async (ms: number) => {
    await Promise.all([queues.of(slug).fetch.rateLimit(ms), limit.holdBack(ms)]);
  };
  const billing = billingClientOf(source, {
    onAnswer: (status) => metrics.requestSent({ source: slug, status }),
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
      holdBack,
      signal,
    },
    config.syncEveryMs,
  );
  /** `fetchShare`: what the limiter of the fetch queue lets through. */
  return { handle, fetchShare: shares.fetch, holdBack, close: () => billing.close() };
}

/** The schedules of a source, from durations of the configuration in milliseconds. */
function schedulesFor(config: Config, { deploymentUrl, probeProject }: SourceConfig) {
  const { syncEveryMs, reconcileForMs, keepHistoryMs, hourlyKeepMs, probeEveryMs, alertWebhookUrl } = config;
  const days = (ms: number) => Math.max(1, Math.ceil(ms / DAY_MS));
  const canProbe = deploymentUrl !== undefined && probeProject !== undefined;
  return schedulesOf({
    syncEveryMs,
    reconcileDays: days(reconcileForMs),
    keepDays: days(keepHistoryMs),
    keepHours: hourlyKeepMs === undefined ? undefined : Math.ceil(hourlyKeepMs / HOUR_MS),
    hasWebhook: alertWebhookUrl !== undefined,
    probeEveryMs: canProbe ? probeEveryMs : undefined,
  });
}
