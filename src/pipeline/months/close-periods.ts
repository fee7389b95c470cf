import { UsageError } from "../../errors.ts";
import type { Store } from "../../store/db/database.ts";
import { type OtherUsage, otherUsage } from "../../store/months/other-usage.ts";
import {
  type BillingPeriod,
  billingPeriods,
  closePeriod,
  type PeriodResult,
} from "../../store/months/period-close.ts";
import type { Actor } from "../../store/work/operator-actions.ts";
import { sourcesToClose } from "./asked.ts";

export interface ClosedPeriod {
  readonly source: string;
  readonly period: BillingPeriod;
  readonly result: PeriodResult;
  /** What is known of other usage than traces of all tiers, as far as it is wanted or loaded. */
  readonly others: readonly OtherUsage[];
}

/**
 * Closes the billing period of each source in which a day lies. Errors: `period_invalid`, `period_unknown`, `period_not_over`,
 * `period_start_unknown`, `period_is_month`, `period_before_data`, `source_unloaded`; then nothing was closed of that source and
 * those after it.
 */
export async function closePeriods(
  store: Store,
  order: {
    day: string;
    slugs: readonly string[];
    acceptDisagreements: boolean;
    settleAfterMs: number;
    by: Actor;
  },
): Promise<ClosedPeriod[]> {
  const { day, slugs, acceptDisagreements, settleAfterMs, by } = order;
  if (!/^\d{4}-\d{2}-\d{2}$/.test(day) || Number.isNaN(Date.parse(day))) {
    throw refused(
      "period_invalid",
      `${JSON.stringify(day)} is not a day.`,
      "Give a day of the period, such as 2026-03-20.",
    );
  }
  const closed: ClosedPeriod[] = [];
  for (const { sourceId, source } of await sourcesToClose(store.db, slugs)) {
    const period = periodOf(source, day, await billingPeriods(store.db, sourceId));
    const asked = { sourceId, period, acceptDisagreements, settleAfterMs, by };
    const result = await closePeriod(store, asked);
    const range = { start: Date.parse(period.start), end: Date.parse(period.end) };
    closed.push({ source, period, result, others: await otherUsage(store.db, { sourceId, range }) });
  }
  return closed;
}

/** The period of the day. Only one whose ends are both known is closed. */
function periodOf(source: string, day: string, known: readonly BillingPeriod[]): BillingPeriod {
  const period = known.find(({ start, end }) => start <= day && day < end);
  if (period === undefined) {
    const which = known.map(({ start, end }) => `${start} to ${end}`).join(", ");
    throw refused(
      "period_unknown",
      `No billing period of source ${source} is known in which ${day} lies.${which === "" ? "" : ` Known are ${which}.`}`,
      "Run `usage-etl totals --provider` to read the one under way, or close the calendar month.",
    );
  }
  const name = `The billing period ${period.start} to ${period.end} of source ${source}`;
  if (period.isCalendarMonth) {
    const month = period.start.slice(0, 7);
    throw refused("period_is_month", `${name} is a calendar month.`, `Run \`usage-etl close ${month}\`.`);
  }
  if (!period.isStartKnown) {
    const next = "Close a later period, or the calendar month.";
    throw refused("period_start_unknown", `${name} has a start that is only inferred.`, next);
  }
  if (!period.isOver) {
    const next = "Close it when its last day is final (USAGE_SETTLE_AFTER after its end) and reconciled.";
    throw refused("period_not_over", `${name} is not over yet.`, next);
  }
  return period;
}

function refused(code: string, message: string, next: string): UsageError {
  return new UsageError({ code, message, next });
}
