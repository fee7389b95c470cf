import { type BudgetState, budgetState } from "../../domain/bill/budget.ts";
import type { Budget } from "../../domain/bill/owner.ts";
import type { CalendarMonth } from "../../domain/months/month.ts";
import { addDays, dayOf } from "../../domain/time/days.ts";
import { FORECAST_DAYS } from "../../domain/usage/forecast.ts";
import { type BudgetCourse, budgetCourses } from "../../store/bill/budgets.ts";
import type { Database } from "../../store/db/database.ts";

export type MonthBudget = Omit<BudgetCourse, "days"> & BudgetState;

/** How all budgets stand in a calendar month, in the order of the owner file. `now`: epoch milliseconds. */
export async function monthBudgets(
  db: Database,
  { month, now }: { month: CalendarMonth; now: number },
): Promise<MonthBudget[]> {
  const today = dayOf(now);
  const tomorrow = addDays(today, 1);
  const to = [month.end, tomorrow].sort()[0] as string;
  const courses = await budgetCourses(db, { from: addDays(month.start, -FORECAST_DAYS), to });
  const range = { from: month.start, to: month.end };
  return courses.map(({ days, ...budget }) => ({
    ...budget,
    ...budgetState(budget, { days, month: range, today }),
  }));
}

/** `owner search`, `workspace Research`, `everything`. */
export function describeBudgeted({ of, source, name }: Budget & { readonly name: string | null }): string {
  const within = source === null ? "" : ` of source ${source}`;
  return of === null ? `everything${within}` : `${of.kind} ${name ?? of.id}${within}`;
}
