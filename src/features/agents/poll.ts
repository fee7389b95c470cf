import type { Clock } from "../../core/base/clock.ts";
import { DeadlineError, PlatformError } from "../../core/base/errors.ts";

const FIRST_MS = 250;
const LONGEST_MS = 10_000;
/** Longest time that `setTimeout` accepts, about 25 days. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const NOTHING_UNDONE = "Nothing was undone. Wait longer (--within), or check what it is doing.";

interface Limit {
  readonly withinMs: number;
  readonly signal?: AbortSignal | undefined;
}

export interface Waiting extends Limit {
  readonly clock: Clock;
}

/** Requests within `look` use this signal, so that reading their bodies ends at the deadline too. */
export interface Looking {
  readonly leftMs: number;
  readonly signal: AbortSignal;
}

/** Aborts with a `DeadlineError` after the time, or when `signal` aborts. `next` is called only when the time is over. */
export function deadlineSignal(
  what: string,
  { withinMs, signal, next = () => NOTHING_UNDONE }: Limit & { next?: () => string },
): AbortSignal {
  const over = new AbortController();
  const end = () => over.abort(deadlinePassed(what, withinMs, { next: next() }));
  setTimeout(end, Math.min(withinMs, LONGEST_TIMER_MS)).unref();
  return signal === undefined ? over.signal : AbortSignal.any([signal, over.signal]);
}

/**
 * Calls `look` until it returns a value. Pauses double, and retryable errors are retried. Throws `DeadlineError`
 * (`deadline_passed`), the error of `look`, or the signal's reason.
 */
export async function pollUntil<T>(
  what: string,
  { withinMs, clock, signal: given }: Waiting,
  look: (looking: Looking) => Promise<T | undefined>,
): Promise<T> {
  const deadline = clock.now() + withinMs;
  const signal = deadlineSignal(what, { withinMs, signal: given });
  let last: PlatformError | undefined;
  try {
    for (let pause = FIRST_MS; ; pause = Math.min(pause * 2, LONGEST_MS)) {
      signal.throwIfAborted();
      try {
        const seen = await look({ leftMs: Math.max(1, deadline - clock.now()), signal });
        if (seen !== undefined) return seen;
        last = undefined;
      } catch (error) {
        if (!(error instanceof PlatformError) || !error.retryable) throw error;
        last = error;
      }
      const left = deadline - clock.now();
      if (left <= 0) throw deadlinePassed(what, withinMs, { last });
      await clock.wait(Math.min(Math.max(pause, last?.retryAfterMs ?? 0), left), signal);
    }
  } catch (error) {
    const isOver = error === signal.reason && error instanceof DeadlineError;
    throw isOver ? deadlinePassed(what, withinMs, { last }) : error;
  }
}

function deadlinePassed(
  what: string,
  withinMs: number,
  { last, next = NOTHING_UNDONE }: { last?: PlatformError | undefined; next?: string },
): DeadlineError {
  return new DeadlineError({
    code: "deadline_passed",
    message: `${what} did not happen within ${withinMs / 1000} s${last === undefined ? "." : `: ${last.message}`}`,
    next,
    retryable: true,
    cause: last,
  });
}
