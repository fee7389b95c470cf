import { type CalendarMonth, monthNamed } from "../../domain/months/month.ts";
import { UsageError } from "../../errors.ts";
import { type SourceWithWorkspaces, sourcesWithWorkspaces } from "../../store/activity/overview.ts";
import type { Database } from "../../store/db/database.ts";
import { monthBeforeData } from "../../store/months/month-close.ts";
import { workspacesOf } from "../backfill/wish.ts";

/** Errors: `month_invalid`, `month_not_over`. `now`: Postgres's clock, epoch milliseconds. */
export function monthOf(text: string, now: number): CalendarMonth {
  const month = monthNamed(text);
  if (month === undefined) {
    throw new UsageError({
      code: "month_invalid",
      message: `${JSON.stringify(text)} is not a month.`,
      next: "Give a year and a month, such as 2026-03.",
    });
  }
  if (Date.parse(month.end) > now) {
    throw new UsageError({
      code: "month_not_over",
      message: `${text} is not over yet.`,
      next: "Close it when its last day is final (USAGE_SETTLE_AFTER after its end) and reconciled.",
    });
  }
  return month;
}

/**
 * The stored sources that are configured, or all if none is. A source that was only tried must not block a close. Error:
 * `source_unloaded`.
 */
export async function sourcesToClose(
  db: Database,
  slugs: readonly string[],
): Promise<SourceWithWorkspaces[]> {
  const listed = await sourcesWithWorkspaces(db);
  const meant = slugs.length === 0 ? listed : listed.filter(({ source }) => slugs.includes(source));
  if (meant.length > 0) return meant;
  throw new UsageError({
    code: "source_unloaded",
    message: `Nothing is loaded for ${slugs.length === 0 ? "any source" : `source ${slugs.join(", ")}`}.`,
    next: `Run \`usage-etl sync\` first.${listed.length === 0 ? "" : ` Loaded sources: ${listed.map(({ source }) => source).join(", ")}.`}`,
  });
}

/** The sources whose data starts before the end of the month. Error: `month_before_data` if there are none. */
export function withinMonth(
  month: CalendarMonth,
  sources: readonly SourceWithWorkspaces[],
): SourceWithWorkspaces[] {
  const within = sources.filter(({ dataStart }) => dataStart < month.end);
  if (within.length > 0) return within;
  throw monthBeforeData(month.name);
}

/** The workspaces that are to be left out, each once. Error: `workspace_unknown`, with those that the sources know. */
export function leftOut(asked: readonly string[], known: readonly string[]): readonly string[] {
  return [...new Set(workspacesOf(asked, known))];
}
