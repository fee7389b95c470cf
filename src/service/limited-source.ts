import type { Hold } from "../../jobs/holds.ts";
import { createStoreGate } from "../../jobs/holds.ts";
import { createRequestLimit } from "../../jobs/request-limit.ts";
import { systemClock } from "../clock.ts";
import type { Config, SourceConfig } from "../config/config.ts";
import type { Logger, Warn } from "../log.ts";
import { sharesOf } from "../pipeline/source/rate-shares.ts";
import { createSourceHandle } from "../pipeline/source/source-handle.ts";
import { billingClientOf } from "../platform/clients.ts";
import type { Store } from "../store/db/database.ts";
import { tryWrite } from "../store/work/try-write.ts";
import type { ProcessState } from "./http/health.ts";
import type { Metrics } from "./http/metrics.ts";
import type { ServiceQueues } from "./queues.ts";
import type { SecretFiles } from "./secret-files.ts";

/** What the sources of one process share. */
export interface Shared {
  readonly config: Config;
  readonly store: Store;
  readonly queues: ServiceQueues;
  readonly metrics: Metrics;
  readonly state: ProcessState;
  /** While it holds, this process takes no job and touches no schedule. */
  readonly clockOff: Hold;
  readonly secretFiles: SecretFiles;
  readonly log: Logger;
  readonly warn: Warn;
  /** Aborted when the process ends. */
  readonly signal: AbortSignal;
}

/** A source with its request rate limit. */
export type LimitedSource = ReturnType<typeof openLimited>;

/** How often a request of a control job is tried. The schedule repeats the job, so few attempts are enough. */
const CONTROL_ATTEMPTS = 4;

export function openLimited(source: SourceConfig, shared: Shared) {
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
  // Stops requests on all hosts. The platform limits the key: whoever gets a 429 stops fetches and control jobs alike.
  const holdBack = async (asked: number) => {
    // Redis refuses an expiry of 0, which is what `Retry-After: 0` asks for.
    const ms = Math.max(1, Math.ceil(asked));
    await Promise.all([queues.of(slug).fetch.rateLimit(ms), limit.holdBack(ms)]);
  };
  const gate = createStoreGate({ tryWrite: () => tryWrite(store), clock: systemClock, log, signal });
  gate.onChange(() => {
    const fault = gate.fault();
    if (fault === undefined) state.storeFaults.delete(slug);
    else state.storeFaults.set(slug, fault.message);
  });
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
      // One wrong id must not end the loads of the others.
      leavesOutUnshown: true,
      holdBack,
      gate,
      signal,
    },
    config.syncEveryMs,
  );
  /** `fetchShare`: what the limiter of the fetch queue lets through. */
  return { handle, fetchShare: shares.fetch, gate, holdBack, close: () => billing.close() };
}
