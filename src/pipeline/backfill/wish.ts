import { FIRST_DAY, LAST_DAY } from "../../config/settings.ts";
import { shortInstant } from "../../domain/time/days.ts";
import type { Stride } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import type { Meter } from "../../domain/usage/meter.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import { UsageError } from "../../errors.ts";
import { DateTime } from "../../luxon.ts";

/** The request of a backfill, before it is known what is loaded. */
export interface Wish {
  readonly meter: Meter;
  readonly range: Interval;
  readonly stride: Stride;
  readonly groupings: readonly GroupBy[];
  readonly reprocess: "missing" | "all";
}

export function refuseOutside(
  source: { readonly dataStart: number },
  range: { readonly start: number; readonly end: number },
  now: number,
): void {
  const reason =
    range.end <= source.dataStart
      ? `ends before the source's data start, ${shortInstant(source.dataStart)}`
      : range.start > now
        ? "lies in the future"
        : undefined;
  if (reason === undefined) return;
  throw new UsageError({
    code: "range_without_data",
    message: `The range ${shortInstant(range.start)} to ${shortInstant(range.end)} ${reason}.`,
    next: "Choose a range between the data start (USAGE_DATA_START) and now.",
  });
}

/** Error: `workspace_unknown`, which lists those that the source knows. */
export function workspacesOf(
  asked: readonly string[] | undefined,
  known: readonly string[],
): readonly string[] {
  const unknown = asked?.find((id) => !known.includes(id));
  if (unknown === undefined) return asked ?? known;
  throw new UsageError({
    code: "workspace_unknown",
    message: `Workspace ${unknown} is not known.`,
    next: `Choose one of: ${known.join(", ") || "none yet; run `usage-etl sync --inline` first"}.`,
  });
}

/** A sentence if the range ends in the future. */
export function endsInFuture(askedEnd: number, planned: number | undefined): string | undefined {
  if (planned === undefined || askedEnd <= planned) return undefined;
  return `The range ends in the future (${shortInstant(askedEnd)}). It is asked for until ${shortInstant(planned)}.`;
}

/** Reads an ISO 8601 day or instant, in UTC if it has no offset. Returns epoch milliseconds, or the problem as a sentence. */
export function readInstant(text: string): number | string {
  // luxon alone would read "10:00" as today and "2026" as its first day.
  const value = DateTime.fromISO(text, { zone: "utc" });
  if (!value.isValid || !/^\d{4}-\d{2}-\d{2}(T|$)/.test(text))
    return "It is not a day or instant such as 2026-03-01.";
  const ms = value.toMillis();
  if (ms >= Date.parse(FIRST_DAY) && ms <= Date.parse(LAST_DAY)) return ms;
  return `It is not between ${FIRST_DAY} and ${LAST_DAY}.`;
}
