import { namesWithoutCost } from "../../domain/bill/bill.ts";
import type { UnpricedDay } from "../../domain/bill/price.ts";
import { type CalendarMonth, daysOfMonth, monthNamed } from "../../domain/months/month.ts";
import { intervalOf } from "../../domain/time/days.ts";
import { UsageError } from "../../errors.ts";
import { type SourceWithWorkspaces, sourcesWithWorkspaces } from "../../store/activity/overview.ts";
import { monthBill } from "../../store/bill/bill-lines.ts";
import type { Database, Store } from "../../store/db/database.ts";
import { unpricedIn } from "../../store/figures/costs.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { type BesideTraces, besideTraces } from "../../store/months/beside-traces.ts";
import {
  type CloseRequest,
  type CloseResult,
  closeMonth,
  monthBeforeData,
} from "../../store/months/month-close.ts";
import { type OtherUsage, otherUsage } from "../../store/months/other-usage.ts";
import {
  type BillingPeriod,
  billingPeriods,
  closePeriod,
  type PeriodResult,
} from "../../store/months/period-close.ts";
import type { Actor } from "../../store/work/operator-actions.ts";
import { workspacesOf } from "../backfill/wish.ts";

/** Digests of the preview are one for each source. */
export interface CloseOrder extends Omit<CloseRequest, "sourceId" | "monthStart"> {
  readonly month: string;
  readonly slugs: readonly string[];
}

export interface ClosedSource extends BesideTraces {
  readonly source: string;
  /** The workspaces of this source that the user wants to leave out. */
  readonly asked: readonly string[];
  readonly result: CloseResult;
  /** Usage that was closed with costs now and has no price. */
  readonly unpriced: readonly UnpricedDay[];
  readonly withoutCost: readonly string[];
}

/**
 * Closes a month of each source that has days in it. Errors: `month_invalid`, `month_not_over`,
 * `month_before_data`, `source_unloaded`, `workspace_unknown`, `workspaces_unknown`, `month_unpriced`,
 * `month_changed`; then nothing was closed of that source and those after it.
 */
export async function closeSources(
  store: Store,
  order: CloseOrder,
): Promise<{ month: CalendarMonth; closed: ClosedSource[] }> {
  const { month: named, slugs, without = [], ...how } = order;
  const month = monthOf(named, await storeNow(store.db));
  const sources = await sourcesToClose(store.db, slugs);
  const out = leftOut(
    without,
    sources.flatMap(({ workspaceIds }) => workspaceIds),
  );
  const closed: ClosedSource[] = [];
  for (const { sourceId, source, workspaceIds } of withinMonth(month, sources)) {
    const asked = out.filter((id) => workspaceIds.includes(id));
    const result = await closeMonth(store, { ...how, sourceId, monthStart: month.start, without: asked });
    const days = daysOfMonth(month);
    const beside = await besideTraces(store.db, {
      sourceId,
      monthStart: month.start,
      range: intervalOf(days),
    });
    const hasCosts = "costs" in result && result.costs.length > 0;
    const isAbout = !beside.lacksPrice && how.withoutCosts !== true && result.state !== "closed_before";
    const bill = isAbout ? await monthBill(store.db, { source, monthStart: month.start }) : [];
    const unpriced = hasCosts ? await unpricedIn(store.db, { source, workspaceId: null, range: days }) : [];
    closed.push({ source, asked, result, unpriced, withoutCost: namesWithoutCost(bill), ...beside });
  }
  return { month, closed };
}

/** True if the month is closed and leaves out the requested workspaces only. Closing its costs later need not name them. */
export function isAsAsked({ result, asked }: Pick<ClosedSource, "result" | "asked">): boolean {
  if (result.state === "costs_closed" && asked.length === 0) return true;
  return result.state !== "open" && [...asked].sort().join() === result.without.join();
}

export interface ClosedPeriod {
  readonly source: string;
  readonly period: BillingPeriod;
  readonly result: PeriodResult;
  /** Other usage than traces of all tiers, as far as it is wanted or loaded. */
  readonly others: readonly OtherUsage[];
}

/**
 * Closes the billing period of each source in which a day lies. Errors: `period_invalid`, `period_unknown`,
 * `period_not_over`, `period_start_unknown`, `period_is_month`, `period_before_data`, `source_unloaded`; then
 * nothing was closed of that source and those after it.
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
    const range = intervalOf(daysOfMonth(period));
    closed.push({ source, period, result, others: await otherUsage(store.db, { sourceId, range }) });
  }
  return closed;
}

/** Only a period whose ends are both known is closed. */
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

export function givenMonth(text: string): CalendarMonth {
  const month = monthNamed(text);
  if (month !== undefined) return month;
  throw new UsageError({
    code: "month_invalid",
    message: `${JSON.stringify(text)} is not a month.`,
    next: "Give a year and a month, such as 2026-03.",
  });
}

/** A month that has begun by `now` (Postgres's clock). Errors: `month_invalid`, `month_not_begun`. */
export function begunMonth(text: string, now: number): CalendarMonth {
  const month = givenMonth(text);
  if (Date.parse(month.start) <= now) return month;
  throw new UsageError({
    code: "month_not_begun",
    message: `${month.name} has not begun.`,
    next: "Give a month that is over, or the one under way.",
  });
}

export function monthOf(text: string, now: number): CalendarMonth {
  const month = givenMonth(text);
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
 * The stored sources that are configured, or all if none is. A source that somebody only tried must not block a close. Error:
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
function withinMonth(month: CalendarMonth, sources: readonly SourceWithWorkspaces[]): SourceWithWorkspaces[] {
  const within = sources.filter(({ dataStart }) => dataStart < month.end);
  if (within.length > 0) return within;
  throw monthBeforeData(month.name);
}

/** The workspaces to leave out, each once. Error: `workspace_unknown`, which lists those that the sources know. */
export function leftOut(asked: readonly string[], known: readonly string[]): readonly string[] {
  return [...new Set(workspacesOf(asked, known))];
}
