import { describeDuration } from "../../clock.ts";
import { DateTime } from "../../luxon.ts";

/** Nobody waits longer before an attempt, whatever a server asks for. */
export const LONGEST_WAIT_MS = 300_000;

export interface RetryAfter {
  /** Milliseconds to wait; undefined if the header does not say. A past date is 0. */
  readonly ms?: number;
  /** What is wrong with the header, for a message. */
  readonly problem?: string;
}

/** Reads a `Retry-After` header: whole seconds or an HTTP date (RFC 9110, 10.2.3), bounded to five minutes. */
export function fromRetryAfter(header: string | undefined, now: number): RetryAfter {
  const text = header?.trim() ?? "";
  if (text === "") return {};
  const ms = /^\d+$/.test(text)
    ? Number(text) * 1000
    : Math.max(DateTime.fromHTTP(text, { zone: "utc" }).toMillis() - now, 0);
  const shown = JSON.stringify(text.slice(0, 40));
  if (Number.isNaN(ms)) return { problem: `Its Retry-After, ${shown}, cannot be read.` };
  if (ms <= LONGEST_WAIT_MS) return { ms };
  const bound = describeDuration(LONGEST_WAIT_MS);
  return {
    ms: LONGEST_WAIT_MS,
    problem: `Its Retry-After, ${shown}, is longer than ${bound}, the longest wait.`,
  };
}
