import { type CalendarMonth, daysOfMonth, daysWithin } from "../../core/domain/months/month.ts";
import { intervalOf } from "../../core/domain/time/days.ts";
import type { SourceWithWorkspaces } from "../../core/store/activity/overview.ts";
import type { Database } from "../../core/store/db/database.ts";
import { type Close, closeOf } from "../../core/store/months/closes.ts";
import { type OtherTraces, otherTraces } from "../costs/other-traces.store.ts";
import { monthOf } from "./close.ts";
import { periodBeforeData } from "./close-period.store.ts";
import { type OpenDays, openDaysOf } from "./open-days.store.ts";

export interface MonthLook extends OpenDays, OtherTraces {
  readonly month: CalendarMonth;
  /** Undefined: the month is open. Then `open` has what `close` would list now. */
  readonly closed: Close | undefined;
}

/** Previews a close without a lock, so that no load waits. Errors: `month_invalid`, `period_not_over`, `period_before_data`. */
export async function lookAtMonth(
  db: Database,
  requested: { month: string; source: SourceWithWorkspaces; now: number },
): Promise<MonthLook> {
  const { source, now } = requested;
  const { sourceId, dataStart } = source;
  const month = monthOf(requested.month, now);
  if (dataStart >= month.end) throw periodBeforeData(month.name);
  const closed = await closeOf(db, { sourceId, ...month });
  const range = intervalOf(daysOfMonth(month));
  const beside = await otherTraces(db, { sourceId, monthStart: month.start, range });
  if (closed !== undefined) return { month, closed, ...beside, required: [], open: [] };
  const ranges = [daysWithin(month, dataStart)];
  const [days] = await openDaysOf(db, { sourceId, ranges });
  return { month, closed, ...beside, ...(days as OpenDays) };
}
