import type { Clock } from "../../clock.ts";
import { DeadlineError, PlatformError } from "../../errors.ts";

/** The first and the longest pause, milliseconds. */
const FIRST_MS = 250;
const LONGEST_MS = 10_000;

export interface Waiting {
  /** Milliseconds. */
  readonly withinMs: number;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Calls `look` until it returns a value, with pauses that double. Retryable errors are retried until the deadline. `look` gets the
 * milliseconds that are left. Throws `DeadlineError` (`deadline_passed`), what `look` throws, or the signal's reason.
 */
export async function pollUntil<T>(
  what: string,
  { withinMs, clock, signal }: Waiting,
  look: (leftMs: number) => Promise<T | undefined>,
): Promise<T> {
  const deadline = clock.now() + withinMs;
  let last: PlatformError | undefined;
  for (let pause = FIRST_MS; ; pause = Math.min(pause * 2, LONGEST_MS)) {
    signal?.throwIfAborted();
    try {
      const seen = await look(Math.max(1, deadline - clock.now()));
      if (seen !== undefined) return seen;
      last = undefined;
    } catch (error) {
      if (!(error instanceof PlatformError) || !error.retryable) throw error;
      last = error;
    }
    const left = deadline - clock.now();
    if (left <= 0) throw deadlinePassed(what, withinMs, last);
    await clock.wait(Math.min(Math.max(pause, last?.retryAfterMs ?? 0), left), signal);
  }
}

function deadlinePassed(what: string, withinMs: number, last: PlatformError | undefined): DeadlineError {
  return new DeadlineError({
    code: "deadline_passed",
    message: `${what} did not happen within ${Math.round(withinMs / 1000)} s${last === undefined ? "." : `: ${last.message}`}`,
    next: "Nothing was undone. Wait longer (--within), or check what it is doing.",
    retryable: true,
    cause: last,
  });
}
