import { FIRST_DAY, LAST_DAY } from "../../config/settings.ts";
import { shortInstant } from "../../domain/time/days.ts";
import type { Stride } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import type { Meter } from "../../domain/usage/meter.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import { UsageError } from "../../errors.ts";
import { DateTime } from "../../luxon.ts";

/** What somebody asks for, before it is known what of it is loaded. */
export interface Wish {
  readonly meter: Meter;
  readonly range: Interval;
  readonly stride: Stride;
  readonly groupings: readonly GroupBy[];
  readonly reprocess: "missing" | "all";
}

/** Error: `range_without_data`. */
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

/** The workspaces that somebody asks for. Error: `workspace_unknown`, with those that the source knows. */
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

/** Sentence for a range whose end lies in the future; undefined for another one. */
export function endsInFuture(askedEnd: number, planned: number | undefined): string | undefined {
  if (planned === undefined || askedEnd <= planned) return undefined;
  return `The range ends in the future (${shortInstant(askedEnd)}). It is asked for until ${shortInstant(planned)}.`;
}

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
