import { DateTime } from "luxon";

/** The longest back-off of a failure (rule 12 of docs/architecture.md). */
const LONGEST_MS = 24 * 3_600_000;

/**
 * Milliseconds to wait by a `Retry-After` header: whole seconds or an HTTP date (RFC 9110, 10.2.3), at most a day. A past date is
 * 0; an absent or malformed header is undefined.
 */
export function fromRetryAfter(header: string | undefined, now: number): number | undefined {
  const text = header?.trim() ?? "";
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, LONGEST_MS);
  const date = DateTime.fromHTTP(text, { zone: "utc" });
  return date.isValid ? Math.min(Math.max(date.toMillis() - now, 0), LONGEST_MS) : undefined;
}
