import { type CalendarMonth, daysOfMonth } from "../../domain/months/month.ts";
import { intervalOf } from "../../domain/time/days.ts";
import type { SourceWithWorkspaces } from "../../store/activity/overview.ts";
import type { Database } from "../../store/db/database.ts";
import { type BesideTraces, besideTraces } from "../../store/months/beside-traces.ts";
import { type ClosedMonth, closedMonth } from "../../store/months/closed-months.ts";
import { monthBeforeData } from "../../store/months/month-close.ts";
import { type CloseRange, type OpenDays, openDaysOf } from "../../store/months/open-days.ts";
import { leftOut, monthOf } from "./close.ts";

/** A month of a source as it is, without closing it. */
export interface MonthLook extends OpenDays, BesideTraces {
  readonly month: CalendarMonth;
  /** Undefined while the month is open. Then `open` is what `close` would list now. */
  readonly closed: ClosedMonth | undefined;
}

/**
 * Previews what `close` would find. It takes no lock, so no load waits for it. Errors: `month_invalid`, `month_not_over`,
 * `month_before_data`, `workspace_unknown`.
 */
export async function lookAtMonth(
  db: Database,
  asked: {
    month: string;
    source: SourceWithWorkspaces;
    without: readonly string[];
    acceptDisagreements: boolean;
    now: number;
  },
): Promise<MonthLook> {
  const { source, acceptDisagreements, now } = asked;
  const { sourceId, dataStart } = source;
  const month = monthOf(asked.month, now);
  if (dataStart >= month.end) throw monthBeforeData(month.name);
  const closed = await closedMonth(db, { sourceId, monthStart: month.start });
  const range = intervalOf(daysOfMonth(month));
  const beside = await besideTraces(db, { sourceId, monthStart: month.start, range });
  if (closed !== undefined) return { month, closed, ...beside, required: [], open: [], accepted: 0 };
  const without = leftOut(asked.without, source.workspaceIds);
  const ranges = [daysWithin(month, dataStart)];
  const [days] = await openDaysOf(db, { sourceId, ranges, without, acceptDisagreements });
  return { month, closed, ...beside, ...(days as OpenDays) };
}

/** The days of a month from the data start (ISO day) on. */
export function daysWithin({ start, end }: CalendarMonth, dataStart: string): CloseRange {
  const days = { start: Date.parse(start < dataStart ? dataStart : start), end: Date.parse(end) };
  return { ...days, othersStart: Date.parse(start) };
}
