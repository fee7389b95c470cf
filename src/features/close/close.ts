import { UsageError } from "../../core/base/errors.ts";
import {
  type CalendarMonth,
  daysOfMonth,
  isMonth,
  type Period,
  periodText,
} from "../../core/domain/months/month.ts";
import type { ProviderMonth } from "../../core/domain/months/provider.ts";
import { intervalOf, isDay } from "../../core/domain/time/days.ts";
import type { SourceWithWorkspaces } from "../../core/store/activity/overview.ts";
import type { Database, Store } from "../../core/store/db/database.ts";
import { storeNow } from "../../core/store/work/fetch-ledger.ts";
import { givenMonth, sourcesToClose } from "../catalog/named.ts";
import { namesWithoutCost } from "../costs/bill.ts";
import { monthBill } from "../costs/bill-lines.store.ts";
import { billingPeriods } from "../costs/bill-terms.store.ts";
import { unpricedIn } from "../costs/costs.store.ts";
import { type OtherTraces, otherTraces } from "../costs/other-traces.store.ts";
import { otherUsage } from "../costs/other-usage.store.ts";
import type { UnpricedDay } from "../costs/price.ts";
import { type CloseRequest, type CloseResult, closePeriod, periodBeforeData } from "./close-period.store.ts";

/** `accept` has one digest for each source, from a preview. */
export interface CloseOrder extends Omit<CloseRequest, "sourceId" | "period"> {
  readonly period: string;
  readonly slugs: readonly string[];
}

export interface ClosedSource extends Omit<OtherTraces, "provider"> {
  readonly source: string;
  readonly period: Period;
  readonly result: CloseResult;
  readonly unpriced: readonly UnpricedDay[];
  readonly withoutCost: readonly string[];
  /** Null: the period is not a calendar month. */
  readonly provider: ProviderMonth | null;
}

/**
 * Closes a period of each source that has days in it. Errors: those of `closePeriod`, `month_invalid`, `period_unknown`,
 * `period_start_unknown`, `period_not_over`, `source_unloaded`; then the failed source and those after it stay open.
 */
export async function closeSources(store: Store, order: CloseOrder): Promise<ClosedSource[]> {
  const { period: text, slugs, ...how } = order;
  const now = await storeNow(store.db);
  const month = isDay(text) ? undefined : monthOf(text, now);
  const sources = await sourcesToClose(store.db, slugs);
  const all = [];
  for (const source of sources) {
    all.push({ ...source, period: month ?? (await billingPeriod(store.db, { source, day: text, now })) });
  }
  const within = all.filter(({ dataStart, period }) => dataStart < period.end);
  if (within.length === 0) throw periodBeforeData(text);
  const closed: ClosedSource[] = [];
  for (const { sourceId, source, period } of within) {
    const result = await closePeriod(store, { ...how, sourceId, period });
    const days = daysOfMonth(period);
    const range = intervalOf(days);
    const beside = isMonth(period)
      ? await otherTraces(store.db, { sourceId, monthStart: period.start, range })
      : { provider: null, lacksPrice: false, others: await otherUsage(store.db, { sourceId, range }) };
    const hasCosts = "costs" in result && result.costs.length > 0;
    const isAbout =
      isMonth(period) && !beside.lacksPrice && how.withoutCosts !== true && result.state !== "closed_before";
    const bill = isAbout ? await monthBill(store.db, { source, monthStart: period.start }) : [];
    const unpriced = hasCosts ? await unpricedIn(store.db, { source, workspaceId: null, range: days }) : [];
    closed.push({ source, period, result, unpriced, withoutCost: namesWithoutCost(bill), ...beside });
  }
  return closed;
}

/** Only a billing period with a known start and end is closed. */
async function billingPeriod(
  db: Database,
  { source, day, now }: { source: SourceWithWorkspaces; day: string; now: number },
): Promise<Period> {
  const known = await billingPeriods(db, source.sourceId);
  const found = known.find(({ start, end }) => start <= day && day < end);
  if (found === undefined) {
    const which = known.map(({ start, end }) => `${start} to ${end}`).join(", ");
    throw refused(
      "period_unknown",
      `Source ${source.source} has no known billing period that includes ${day}.${which === "" ? "" : ` Known periods: ${which}.`}`,
      "Run `usage-etl totals --provider` to read the current period, or close the calendar month.",
    );
  }
  const { start, end, isStartKnown, isCalendarMonth } = found;
  const period = { name: isCalendarMonth ? start.slice(0, 7) : start, start, end };
  if (isCalendarMonth || isStartKnown) return over(period, now);
  throw refused(
    "period_start_unknown",
    `The start of ${periodText(period)} of source ${source.source} is not known, only inferred.`,
    "Close a later period, or the calendar month.",
  );
}

function refused(code: string, message: string, next: string): UsageError {
  return new UsageError({ code, message, next });
}

export function monthOf(text: string, now: number): CalendarMonth {
  return over(givenMonth(text), now);
}

function over(period: Period, now: number): Period {
  if (Date.parse(period.end) <= now) return period;
  throw refused(
    "period_not_over",
    `${periodText(period)} is not over yet.`,
    "Close it when its last day is final (USAGE_SETTLE_AFTER after its end) and reconciled.",
  );
}
