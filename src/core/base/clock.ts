import { setTimeout } from "node:timers/promises";

/** Tests replace these timers. Only Postgres's clock decides what is due or final. */
export interface Clock {
  /** Epoch ms. */
  now(): number;
  /** Rejects with the signal's reason. */
  wait(ms: number, signal?: AbortSignal): Promise<void>;
}

/** Hosts whose clocks differ by more would schedule the same job at different times. */
export const CLOCK_TOLERANCE_MS = 2_000;

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

/** The two largest units: `3 d 4 h`, `59 min 59 s`, `1.5 s`, `250 ms`. */
export function describeDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${Math.round(ms / 100) / 10} s`;
  const pair = (unit: string, length: number, lesser: string, lesserLength: number) => {
    const rest = Math.floor((seconds % length) / lesserLength);
    return `${Math.floor(seconds / length)} ${unit}${rest === 0 ? "" : ` ${rest} ${lesser}`}`;
  };
  if (seconds < 3600) return pair("min", 60, "s", 1);
  return seconds < 86_400 ? pair("h", 3600, "min", 60) : pair("d", 86_400, "h", 3600);
}
