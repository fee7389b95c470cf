import { type Clock, describeDuration } from "../../base/clock.ts";
import { EtlError, PlatformError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";

const CAP_MS = 300_000;
/** Longest pause for Postgres and Redis. They are our own, so the service recovers soon after them. */
const OWN_CAP_MS = 30_000;
/** Wait after a 429 without `Retry-After`, as clients of the platform do (docs/platform.md, Requests). */
const SILENT_LIMIT_MS = 10_000;
/** Least wait after a 429, even if its `Retry-After` is 0 or past. */
const LEAST_LIMIT_MS = 1000;

export interface RetryDeps {
  readonly log: Logger;
  readonly clock: Clock;
  readonly attempts: number;
  /** Makes all processes wait after a 429, because the limit belongs to the key. Default: only this one waits. */
  readonly holdBack?: (ms: number) => Promise<void>;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Retries retryable errors with full jitter, doubling from 1 s to 5 min. Honors `Retry-After` up to 5 min. Throws the last
 * error after `attempts`.
 */
export async function withRetries<T>(
  deps: RetryDeps,
  work: () => Promise<T>,
  attempts = deps.attempts,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    deps.signal?.throwIfAborted();
    try {
      const result = await work();
      deps.signal?.throwIfAborted();
      return result;
    } catch (error) {
      if (!(error instanceof EtlError) || !error.retryable) throw error;
      const ms = pauseOf(error, attempt);
      if (error instanceof PlatformError && error.status === 429) await deps.holdBack?.(ms);
      if (attempt >= attempts) throw error;
      const about = { code: error.code, reason: error.message, attempt, waitMs: ms };
      // Warns once per request, since a person who waits for minutes must know why.
      const isOdd = error instanceof PlatformError && error.isRetryAfterOdd && attempt === 1;
      deps.log[isOdd ? "warn" : "info"](about, `trying again in ${describeDuration(ms)}`);
      await deps.clock.wait(ms, deps.signal);
    }
  }
}

export function pauseOf(error: Error, attempt: number): number {
  if (error instanceof PlatformError) {
    // Nobody can mean a wait of hours or an unreadable value, so growing pauses replace it.
    if (error.isRetryAfterOdd) return Math.min(CAP_MS, SILENT_LIMIT_MS * 2 ** (attempt - 1));
    const requested = error.retryAfterMs;
    // A 429 uses no attempt in the queue, so a 429 without a wait would be sent endlessly.
    if (error.status === 429) return Math.max(requested ?? SILENT_LIMIT_MS, LEAST_LIMIT_MS);
    if (requested !== undefined) return requested;
  }
  const cap = error instanceof PlatformError ? CAP_MS : OWN_CAP_MS;
  return Math.random() * Math.min(cap, 1000 * 2 ** (attempt - 1));
}
