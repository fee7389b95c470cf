import { DateTime } from "luxon";

/** Calendar, week and ordinal dates; with `-` or in the basic form without. */
const DATE = /\d{4}-\d{2}-\d{2}|\d{4}-W\d{2}-\d|\d{4}-\d{3}|\d{8}|\d{4}W\d{3}|\d{7}/;
const TIME = /\d{2}(?::?\d{2}(?::?\d{2}(?:[.,]\d{1,9})?)?)?/;
const ISO = new RegExp(`^(${DATE.source})(?:[T ](${TIME.source})(Z|[+-]\\d{2}(?::?\\d{2})?)?)?$`, "i");

/**
 * ISO 8601 to epoch ms; undefined if it is none. UTC without an offset, midnight without a time (our guesses). The
 * specification says ISO 8601, so its basic form and its week and ordinal dates are read too.
 */
export function instantOf(text: string): number | undefined {
  const [, date, time = "00:00", offset = "Z"] = ISO.exec(text) ?? [];
  if (date === undefined) return undefined;
  const parsed = DateTime.fromISO(`${date}T${time}${offset}`.toUpperCase().replace(",", "."));
  return parsed.isValid ? parsed.toMillis() : undefined;
}
