import { type Clock, describeDuration } from "../../clock.ts";
import { EtlError, PlatformError } from "../../errors.ts";
import type { Logger } from "../../log.ts";

/** When and how often a request is tried again. */

const CAP_MS = 300_000;
/** Postgres and Redis are this service's own: it is back soon after they are. */
const OWN_CAP_MS = 30_000;
/** How long clients of the platform wait after a 429 without `Retry-After` (docs/platform.md, Requests). */
const SILENT_LIMIT_MS = 10_000;
/** The least wait after a 429, also if its `Retry-After` is 0 or past. */
const LEAST_LIMIT_MS = 1000;

export interface RetryDeps {
  readonly log: Logger;
  readonly clock: Clock;
  /** How often a request is tried within one task: 1 where the queue tries again. */
  readonly attempts: number;
  /** Called with a 429's pause before it is waited for, since the limit is the whole key's. Default: no other process waits. */
  readonly holdBack?: (ms: number) => Promise<void>;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Tries retryable errors again: full jitter, doubling from 1 s to 5 min, `Retry-After` honoured up to 5 min. Throws the last error
 * after `attempts`.
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
      // Once a request: a person who waits for minutes must know why.
      const isOdd = error instanceof PlatformError && error.isRetryAfterOdd && attempt === 1;
      deps.log[isOdd ? "warn" : "info"](about, `trying again in ${describeDuration(ms)}`);
      await deps.clock.wait(ms, deps.signal);
    }
  }
}

/** Milliseconds to wait after the n-th failed attempt. */
export function pauseOf(error: Error, attempt: number): number {
  if (error instanceof PlatformError) {
    // Nobody can mean a wait of hours, or what cannot be read: growing pauses find out when it is over.
    if (error.isRetryAfterOdd) return Math.min(CAP_MS, SILENT_LIMIT_MS * 2 ** (attempt - 1));
    const asked = error.retryAfterMs;
    // A 429 uses no attempt in the queue, so one that asks for no wait would be sent without end.
    if (error.status === 429) return Math.max(asked ?? SILENT_LIMIT_MS, LEAST_LIMIT_MS);
    if (asked !== undefined) return asked;
  }
  const cap = error instanceof PlatformError ? CAP_MS : OWN_CAP_MS;
  return Math.random() * Math.min(cap, 1000 * 2 ** (attempt - 1));
}
