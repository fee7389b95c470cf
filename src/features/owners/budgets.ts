import { type CalendarMonth, daysOfMonth, monthAt } from "../../core/domain/months/month.ts";
import { addDays, type Days, dayOf } from "../../core/domain/time/days.ts";
import { amountOf, amountShown, centsShown } from "../../core/domain/usage/amount.ts";
import { FORECAST_DAYS } from "../../core/domain/usage/forecast.ts";
import type { Database } from "../../core/store/db/database.ts";
import { storeNow } from "../../core/store/work/fetch-ledger.ts";
import { type BudgetState, budgetState } from "./budget.ts";
import { type BudgetTrend, billingPeriodsOn, budgetsVersion, budgetTrends } from "./budgets.store.ts";
import type { Budget } from "./owner.ts";

export type MonthBudget = Omit<BudgetTrend, "days"> &
  BudgetState & {
    /**
     * The month, or the billing period of the budget's source that contains today or the month's last day. Null: the period is
     * unknown.
     */
    readonly period: Days | null;
  };

export async function monthBudgets(
  db: Database,
  { month, now }: { month: CalendarMonth; now: number },
): Promise<MonthBudget[]> {
  const today = dayOf(now);
  const ofMonth = daysOfMonth(month);
  const isUnderWay = month.start <= today && today < month.end;
  const periods = await billingPeriodsOn(db, isUnderWay ? today : addDays(month.end, -1));
  const all = [ofMonth, ...periods.values()];
  const last = all
    .map(({ to }) => to)
    .sort()
    .at(-1) as string;
  const to = [last, addDays(today, 1)].sort()[0] as string;
  const first = all.map(({ from }) => from).sort()[0] as string;
  const trends = await budgetTrends(db, {
    from: last <= today ? first : addDays(first, -FORECAST_DAYS),
    to,
  });
  return trends.map(({ days, ...budget }) => {
    const period = budget.per === "month" ? ofMonth : (periods.get(budget.source ?? "") ?? null);
    const known = period === null ? [] : days;
    return { ...budget, period, ...budgetState(budget, { days: known, period: period ?? ofMonth, today }) };
  });
}

export function budgetsOf<B extends Pick<Budget, "source">>(budgets: readonly B[], source: string): B[] {
  return budgets.filter((one) => (one.source ?? source) === source);
}

export interface CurrentBudgets {
  readonly budgets: readonly MonthBudget[];
  readonly changedAt: number;
}

export function isWarned({ passed, reached }: MonthBudget): boolean {
  return passed !== null || reached !== null;
}

let current: { readonly version: string; readonly of: CurrentBudgets } | undefined;

/** Read again only after a change, because reading takes longer than a frequent caller may wait. */
export async function currentBudgets(db: Database): Promise<CurrentBudgets> {
  const { version, changedAt } = (await budgetsVersion(db)) ?? { version: null, changedAt: 0 };
  if (version === null) return { budgets: [], changedAt };
  if (current?.version !== version) {
    const now = await storeNow(db);
    const month = monthAt(now);
    current = { version, of: { budgets: await monthBudgets(db, { month, now }), changedAt } };
  }
  return current.of;
}

export function describeBudget(budget: MonthBudget): string {
  const { currency, amount, spent, percent, reached } = budget;
  const shown = currency === null ? amountShown : centsShown;
  const when = reached === null ? "" : ` It ${reached.isSure ? "was" : "will be"} used up on ${reached.day}.`;
  return `Budget of ${describeBudgeted(budget)}: ${leastOf(budget)}${shown(spent)} of ${shown(amountOf(amount))} ${currency ?? "traces"} (${percent.toFixed(1)} %) this ${budget.per.replace("_", " ")}.${when}`;
}

export function leastOf({ daysMissing, mayBeLess }: Pick<MonthBudget, "daysMissing" | "mayBeLess">): string {
  if (daysMissing === 0) return "";
  return mayBeLess ? "about " : "at least ";
}

export function describeBudgeted({ of, source, name }: Budget & { readonly name: string | null }): string {
  const within = source === null ? "" : ` of source ${source}`;
  return of === null ? `everything${within}` : `${of.kind} ${name ?? of.id}${within}`;
}

export function nameOfBudget(one: Parameters<typeof describeBudgeted>[0]): string {
  return `${describeBudgeted(one)}${one.source === null ? ", all sources" : ""}`;
}
