import { createRequestLimit } from "../../jobs/request-limit.ts";
import { systemClock } from "../clock.ts";
import type { Config, SourceConfig } from "../config/config.ts";
import type { Logger, WarnSparingly } from "../log.ts";
import { sharesOf } from "../pipeline/source/rate-shares.ts";
import { createSourceHandle } from "../pipeline/source/source-handle.ts";
import { billingClientOf } from "../platform/clients.ts";
import type { Store } from "../store/db/database.ts";
import type { ProcessState } from "./http/health.ts";
import type { Metrics } from "./http/metrics.ts";
import type { ServiceQueues } from "./queues.ts";

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

export function openLimited(source: SourceConfig, shared: Shared) {
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
