import pRetry from "p-retry";
import type { Clock } from "../../clock.ts";
import { EtlError, PlatformError } from "../../errors.ts";
import type { Logger } from "../../log.ts";

const CAP_MS = 300_000;
/** What clients of the platform wait after a 429 that says nothing (platform-capabilities.md, "Requests"). */
const SILENT_LIMIT_MS = 10_000;

export interface RetryDeps {
  readonly log: Logger;
  readonly clock: Clock;
  /** How often a request is tried within one slice: 1 where the queue tries again. */
  readonly attempts: number;
  /** Called with a 429's pause, before it is waited for: the limit is the whole key's. Default: nobody else is held back. */
  readonly holdBack?: (ms: number) => Promise<void>;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Tries again what is worth it: full jitter, doubling from 1 s to 5 min, `Retry-After` honoured. Gives up after
 * `attempts` with the last error.
 */
export async function withRetries<T>(
  deps: RetryDeps,
  work: () => Promise<T>,
  attempts = deps.attempts,
): Promise<T> {
  return pRetry(work, {
    retries: attempts - 1,
    // The waiting is done in onFailedAttempt, by the injected clock.
    minTimeout: 0,
    maxTimeout: 0,
    ...(deps.signal === undefined ? {} : { signal: deps.signal }),
    shouldRetry: ({ error }) => error instanceof EtlError && error.retryable,
    onFailedAttempt: async ({ error, attemptNumber, retriesLeft }) => {
      if (!(error instanceof EtlError) || !error.retryable) return;
      const ms = pauseOf(error, attemptNumber);
      if (isRateLimit(error)) await deps.holdBack?.(ms);
      if (retriesLeft === 0) return;
      deps.log.info(
        { code: error.code, reason: error.message, attempt: attemptNumber, waitMs: ms },
        "trying again",
      );
      await deps.clock.wait(ms, deps.signal);
    },
  });
}

/** Whether the platform answered 429, itself or beneath what failed by it. */
function isRateLimit(error: EtlError): boolean {
  const said = error instanceof PlatformError ? error : error.cause;
  return said instanceof PlatformError && said.status === 429;
}

/** Milliseconds to wait after the n-th failed attempt. */
export function pauseOf(error: EtlError, attempt: number): number {
  // A failed fetch wraps what the platform said.
  const said = error instanceof PlatformError ? error : error.cause;
  if (said instanceof PlatformError) {
    if (said.retryAfterMs !== undefined) return Math.min(said.retryAfterMs, CAP_MS);
    if (said.status === 429) return SILENT_LIMIT_MS;
  }
  return Math.random() * Math.min(CAP_MS, 1000 * 2 ** (attempt - 1));
}
