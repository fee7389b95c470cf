import { DateTime } from "./luxon.ts";
import { FIRST_DAY, LAST_DAY } from "./settings.ts";

/** Reads an ISO 8601 day or instant, in UTC if it has no offset. Returns epoch ms, or the problem as a sentence. */
export function readInstant(text: string): number | string {
  // luxon alone would read "10:00" as today and "2026" as its first day.
  const value = DateTime.fromISO(text, { zone: "utc" });
  if (!value.isValid || !/^\d{4}-\d{2}-\d{2}(T|$)/.test(text))
    return "It is not a day or instant such as 2026-03-01.";
  const ms = value.toMillis();
  if (ms >= Date.parse(FIRST_DAY) && ms <= Date.parse(LAST_DAY)) return ms;
  return `It is not between ${FIRST_DAY} and ${LAST_DAY}.`;
}
