import { setTimeout } from "node:timers/promises";

/** Timers that a test replaces. Only Postgres's clock decides what is due or final. */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
  /** Resolves after that many milliseconds, or rejects with the signal's reason. */
  wait(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: Date.now,
  wait: async (ms, signal) => {
    try {
      await setTimeout(ms, undefined, signal === undefined ? {} : { signal });
    } catch (error) {
      // Node rejects with its own AbortError.
      signal?.throwIfAborted();
      throw error;
    }
  },
};
