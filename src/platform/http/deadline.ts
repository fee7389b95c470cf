import type { Clock } from "../../clock.ts";

/** How often it looks at most: a timer is late by up to some milliseconds, which would add up. */
const LEAST_WAIT_MS = 1000;
/** setTimeout takes no more. */
const LONGEST_WAIT_MS = 2 ** 31 - 1;

/** `transportError` makes a `timeout` of it. */
class TooSlow extends Error {
  readonly code = "ETIMEDOUT";
}

/**
 * Aborts one request that takes too long, or that its caller aborts. undici's own time-outs start anew with each 1xx answer
 * and each byte of a body. It measures with timers alone, since the host's clock may be set meanwhile.
 */
export class Deadline {
  readonly #clock: Clock;
  readonly #caller: AbortSignal | undefined;
  readonly #request = new AbortController();
  #watch = new AbortController();

  constructor(clock: Clock, caller: AbortSignal | undefined) {
    this.#clock = clock;
    this.#caller = caller;
    caller?.addEventListener("abort", this.#follow, { once: true });
  }

  /** For the request and its body. */
  get signal(): AbortSignal {
    return this.#request.signal;
  }

  /** From now on, instead of what was set before. `allowedMs` may grow meanwhile. */
  set(allowedMs: () => number, whatFor: () => string): void {
    this.#watch.abort();
    this.#watch = new AbortController();
    // A wait is rejected only when the watch has ended.
    this.#abortAfter(allowedMs, whatFor, this.#watch.signal).catch(() => {});
  }

  /** Call it when the request is over: a signal of the process must not keep a listener of each. */
  end(): void {
    this.#watch.abort();
    this.#caller?.removeEventListener("abort", this.#follow);
  }

  readonly #follow = () => this.#request.abort(this.#caller?.reason);

  async #abortAfter(allowedMs: () => number, whatFor: () => string, watch: AbortSignal): Promise<void> {
    for (let waited = 0; ; ) {
      const left = allowedMs() - waited;
      if (left <= 0) break;
      const ms = Math.min(Math.max(left, LEAST_WAIT_MS), LONGEST_WAIT_MS);
      await this.#clock.wait(ms, watch);
      waited += ms;
    }
    this.#request.abort(new TooSlow(whatFor()));
    this.end();
  }
}
