import { FIRST_DAY, LAST_DAY } from "../../config/settings.ts";
import { DateTime } from "../../luxon.ts";

/** Epoch milliseconds of an ISO 8601 day or instant, without an offset in UTC; or what is wrong with it, as a sentence. */
export function readInstant(text: string): number | string {
  // luxon alone would take "10:00" for today and "2026" for its first day.
  const value = DateTime.fromISO(text, { zone: "utc" });
  if (!value.isValid || !/^\d{4}-\d{2}-\d{2}(T|$)/.test(text))
    return "It is not a day or instant such as 2026-03-01.";
  const ms = value.toMillis();
  if (ms >= Date.parse(FIRST_DAY) && ms <= Date.parse(LAST_DAY)) return ms;
  return `It is not between ${FIRST_DAY} and ${LAST_DAY}.`;
}
