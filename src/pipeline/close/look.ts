import type { CalendarMonth } from "../../domain/close/month.ts";
import type { Interval } from "../../domain/time/window.ts";
import { workspacesOf } from "../../store/catalog/workspaces.ts";
import type { Database } from "../../store/db/database.ts";
import { type ClosedMonth, closedMonth } from "../../store/report/closed-months.ts";
import { monthBeforeData } from "../../store/report/month-close.ts";
import { checkMonths, type MonthCheck } from "../../store/report/month-open-days.ts";
import type { ListedSource } from "../../store/report/overview.ts";
import { leftOut, monthOf } from "./asked.ts";

/** What is known of a month of a source, without closing it. */
export interface MonthLook extends MonthCheck {
  readonly month: CalendarMonth;
  /** Its days that are expected. */
  readonly range: Interval;
  /** Undefined while the month is open. Then `open` is what `close` would list at this moment. */
  readonly closed: ClosedMonth | undefined;
}

/**
 * Looks what `close` would find. It takes no lock, so no load waits for it. Errors: `month_invalid`, `month_not_over`,
 * `month_before_data`, `workspace_unknown`.
 */
export async function lookAtMonth(
  db: Database,
  asked: {
    month: string;
    source: ListedSource;
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
  const range = daysWithin(month, dataStart);
  if (closed !== undefined) return { month, range, closed, required: [], open: [], accepted: 0 };
  const known = await workspacesOf(db, sourceId);
  const without = leftOut(
    asked.without,
    known.map(({ workspaceId }) => workspaceId),
  );
  const [check] = await checkMonths(db, { sourceId, ranges: [range], without, acceptDisagreements });
  return { month, range, closed, ...(check as MonthCheck) };
}

/** The days of a month from the data start (ISO day) on. */
export function daysWithin({ start, end }: CalendarMonth, dataStart: string): Interval {
  return { start: Date.parse(start < dataStart ? dataStart : start), end: Date.parse(end) };
}
