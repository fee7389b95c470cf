import { counted } from "../../core/base/printable.ts";
import { BUDGET_STATUS, type BudgetStatus, type Status } from "../../core/domain/proof/statuses.ts";
import { addDays } from "../../core/domain/time/days.ts";
import { type Amount, amountOf, amountShown } from "../../core/domain/usage/amount.ts";
import { capital, type Html, html, money, name, percent, pill, table } from "../../web/parts.ts";
import { describeLimit, type LimitUse } from "../costs/usage-limit.ts";
import { leastOf, type MonthBudget, nameOfBudget } from "../owners/budgets.ts";

/** Undefined: it is not known whether the budget lasts. */
export function budgetStatus(one: MonthBudget): BudgetStatus | undefined {
  const { reached, period, countedFrom, isPriced, isOver, daysMissing, forecast } = one;
  if (period === null || countedFrom === null || !isPriced) return undefined;
  if (reached !== null) return reached.isSure ? "exceeded" : "at_risk";
  if (daysMissing > 0) return undefined;
  if (isOver) return "within";
  return forecast === null ? undefined : "on_track";
}

const NOT_KNOWN: Status = {
  mark: "?",
  word: "Not known",
  tone: "none",
  about: "A part is not loaded, or there is no forecast yet",
};

export function budgetPill(one: MonthBudget): Html {
  const status = budgetStatus(one);
  return pill(status === undefined ? NOT_KNOWN : BUDGET_STATUS[status]);
}

/** All budgets and limits in one table. */
export function budgetTable(budgets: readonly MonthBudget[], limits: readonly LimitUse[]): Html {
  if (budgets.length + limits.length === 0) return html`<p>No budgets yet. The owner file can have some.</p>`;
  return table({
    label: "Budgets and limits",
    caption: "Of all sources",
    heads: ["Budget or limit", html`<th scope="col" class="number">Used</th>`],
    rows: [
      ...budgets.map((one) =>
        row(
          name(capital(nameOfBudget(one))),
          capital(nameOfBudget(one)),
          detailsOf(one),
          one.percent,
          one.period === null ? undefined : budgetPill(one),
        ),
      ),
      ...limits.map((one) =>
        row(html`${describeLimit(one)}`, "Limit", "", one.percent ?? undefined, undefined),
      ),
    ],
  });
}

function row(
  what: Html,
  title: string,
  details: Html | "",
  used: number | undefined,
  state: Html | undefined,
): Html {
  const share = Math.max(0, Math.min(100, used ?? 0));
  return html`<tr><th scope="row">${what}${details !== "" && html`<br><small>${details}</small>`}</th>
    <td class="number">${used !== undefined && html`${percent(used)}<br><meter min="0" max="100" low="79.9" high="99.9" optimum="0" value="${share}" aria-label="${title}">${used} %</meter>`}${state !== undefined && html`<br>${state}`}</td></tr>`;
}

function detailsOf(one: MonthBudget): Html {
  const { period, per, amount, spent, reached, forecast, isOver, isPriced, currency, countedFrom } = one;
  const shown = (sum: Amount) =>
    currency === null ? html`${amountShown(sum)} traces` : html`${money(sum, currency)} ${currency}`;
  if (period === null) return html`No billing period of ${one.source} is known`;
  if (!isPriced) return html`Nothing has a price in ${currency}`;
  const missing = missingOf(one);
  const parts = [
    html`${leastOf(one)}${shown(spent)} of ${shown(amountOf(amount))}`,
    reached !== null && html`${reached.isSure ? "used up" : "will be used up"} on ${reached.day}`,
    !isOver &&
      forecast !== null &&
      html`forecast ${forecast.toLocaleString("en-US", { maximumFractionDigits: currency === null ? 0 : 2 })}`,
    spent !== one.final && isOver && html`some of it may still change`,
    countedFrom !== null && countedFrom !== period.from && html`counted from ${countedFrom}`,
    missing !== "" && html`${missing}`,
    per !== "month" && html`billing period ${period.from} to ${addDays(period.to, -1)}`,
  ].filter((part) => part !== false);
  return html`${parts.map((part, n) => html`${n > 0 && " · "}${part}`)}`;
}

function missingOf({ daysMissing, daysUnpriced, missingIn, source }: MonthBudget): string {
  if (daysMissing === 0) return "";
  const where = source === null && missingIn.length > 0 ? ` in ${missingIn.join(", ")}` : "";
  const why =
    daysUnpriced === 0
      ? "not loaded"
      : daysUnpriced === daysMissing
        ? "without a price"
        : "not loaded or without a price";
  return `${counted(daysMissing, "day")} ${why}${where}`;
}
