import { UsageError } from "../../core/base/errors.ts";
import { shortInstant } from "../../core/domain/time/days.ts";
import type { Stride } from "../../core/domain/time/stride.ts";
import type { Interval } from "../../core/domain/time/window.ts";
import type { Meter } from "../../core/domain/usage/meter.ts";
import type { GroupBy } from "../../core/domain/usage/record.ts";

export interface BackfillRequest {
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

/** Error: `workspace_unknown`, which lists the workspaces of the source. */
export function workspacesOf(
  requested: readonly string[] | undefined,
  known: readonly string[],
): readonly string[] {
  const unknown = requested?.find((id) => !known.includes(id));
  if (unknown === undefined) return requested ?? known;
  throw new UsageError({
    code: "workspace_unknown",
    message: `Workspace ${unknown} is not known.`,
    next: `Choose one of: ${known.join(", ") || "none yet; run `usage-etl sync --inline` first"}.`,
  });
}

export function endsInFuture(requestedEnd: number, planned: number | undefined): string | undefined {
  if (planned === undefined || requestedEnd <= planned) return undefined;
  return `The range ends in the future (${shortInstant(requestedEnd)}). It is requested until ${shortInstant(planned)}.`;
}
