import { DateTime } from "luxon";

/** Nothing is put off longer than a failure is (docs/decisions.md, rule 12). */
const LONGEST_MS = 24 * 3_600_000;

/**
 * Milliseconds to wait by a `Retry-After` header: whole seconds or an HTTP date (RFC 9110, 10.2.3), at most a day, 0
 * for a date that has passed; undefined where the header is absent or neither.
 */
export function fromRetryAfter(header: string | undefined, now: number): number | undefined {
  const text = header?.trim() ?? "";
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, LONGEST_MS);
  const date = DateTime.fromHTTP(text, { zone: "utc" });
  return date.isValid ? Math.min(Math.max(date.toMillis() - now, 0), LONGEST_MS) : undefined;
}
