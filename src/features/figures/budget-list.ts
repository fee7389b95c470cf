import { counted } from "../../core/base/printable.ts";
import { type CalendarMonth, monthTitle } from "../../core/domain/months/month.ts";
import { addDays } from "../../core/domain/time/days.ts";
import { type Amount, amountDrawn, amountOf, amountShown } from "../../core/domain/usage/amount.ts";
import { FORECAST_METHOD } from "../../core/domain/usage/forecast.ts";
import {
  capital,
  card,
  type Html,
  html,
  money,
  name,
  numberHead,
  percent,
  sign,
  table,
} from "../../web/parts.ts";
import { leastOf, type MonthBudget, nameOfBudget } from "../owners/budgets.ts";

export function budgetTable(budgets: readonly MonthBudget[], month: CalendarMonth): Html {
  if (budgets.length === 0) return html``;
  const isOver = budgets.every((one) => one.isOver);
  const ofMonth = budgets.find(({ per }) => per === "month");
  const passed =
    ofMonth === undefined || ofMonth.isOver ? "" : `; ${ofMonth.percentOfTime} % of the month has passed`;
  return html`<h2>Budgets</h2>
    ${table({
      label: "Budgets",
      kind: "cards",
      caption: isOver
        ? `What was spent of each budget in ${monthTitle(month)}.`
        : `What is spent of each budget in ${monthTitle(month)}${passed}. Forecast: ${lowered(FORECAST_METHOD)}`,
      heads: [
        "Budget of",
        numberHead("Budget"),
        numberHead("Spent"),
        ...(isOver ? [] : [numberHead("May still change"), numberHead("Forecast")]),
        "Used",
        "State",
      ],
      rows: budgets.map((one) => {
        const shown = (amount: Amount) => amountIn(one, amount);
        const of = capital(nameOfBudget(one));
        const time = one.isOver ? "" : `, of which ${one.percentOfTime} % has passed`;
        const period =
          one.per === "month" || one.period === null
            ? ""
            : html`<br><small>billing period ${one.period.from} to ${addDays(one.period.to, -1)}${time}</small>`;
        const share = Math.max(0, Math.min(100, one.percent));
        return card(html`${name(of)}${period}`, [
          ["Budget", html`${shown(amountOf(one.amount))}${one.currency === null && " traces"}`, "number"],
          ["Spent", one.period === null ? "–" : html`${leastOf(one)}${shown(one.spent)}`, "number"],
          ...(isOver
            ? []
            : [
                [
                  "May still change",
                  one.period === null ? "–" : shown(one.spent - one.final),
                  "number",
                ] as const,
                ["Forecast", one.forecast === null ? "–" : forecastIn(one), "number"] as const,
              ]),
          [
            "Used",
            one.period === null
              ? "–"
              : html`<meter min="0" max="100" low="79.9" high="99.9" optimum="0" value="${share}" aria-label="${of}">${one.percent} %</meter> ${percent(one.percent)}`,
            "used",
          ],
          ["State", stateOf(one)],
        ]);
      }),
    })}`;
}

function amountIn({ currency }: MonthBudget, amount: Amount): Html {
  return currency === null ? html`${amountShown(amount)}` : html`${money(amount)} ${currency}`;
}

function forecastIn({ currency, forecast }: MonthBudget): string {
  const digits = currency === null ? 0 : 2;
  const shown = (forecast ?? 0).toLocaleString("en-US", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return currency === null ? shown : `${shown} ${currency}`;
}

function stateOf(one: MonthBudget): Html {
  const { reached, daysMissing, isPriced, currency, amount, forecast, passed, countedFrom, isOver } = one;
  if (one.period === null)
    return html`no billing period of ${one.source} is known: the platform was not read, or shows none`;
  if (countedFrom === null) return html`no day of it is known`;
  if (!isPriced) return html`nothing has a price in ${currency}, so nothing counts`;
  const unloaded = missingOf(one);
  const since = countedFrom === one.period.from ? "" : `, counted from ${countedFrom} on`;
  const days = `${since}${daysMissing === 0 ? "" : `, and ${unloaded}`}`;
  if (reached?.isSure) return html`${sign("failed", "✕", "used up")} since ${reached.day}${days}`;
  if (reached !== null) return html`${sign("provisional", "◐", "will be used up")} on ${reached.day}${days}`;
  if (isOver) {
    if (daysMissing > 0) return html`not known: ${unloaded}`;
    if (one.spent !== one.final) return html`not used up${since}, and some of it may still change`;
    return html`${sign("ok", "●", "kept")}${since}`;
  }
  const isKnown = forecast !== null && forecast < amountDrawn(amountOf(amount));
  const warned = passed === null ? "" : `${passed} % is passed; `;
  if (isKnown) return html`${warned}it lasts for the ${one.per.replace("_", " ")}`;
  const why = daysMissing === 0 ? "less than two weeks are final" : unloaded;
  return html`${warned}no forecast: ${why}`;
}

function missingOf({ daysMissing, daysUnpriced, missingIn, source }: MonthBudget): string {
  const where = source === null && missingIn.length > 0 ? ` in ${missingIn.join(", ")}` : "";
  const days = counted(daysMissing, "day");
  const [are, have] = daysMissing === 1 ? ["is", "has"] : ["are", "have"];
  if (daysUnpriced === 0) return `${days} ${are} not loaded${where}`;
  const unpriced = `${have} usage without a price`;
  return `${days} ${daysUnpriced === daysMissing ? unpriced : `${are} not loaded or ${unpriced}`}${where}`;
}

function lowered(text: string): string {
  return text.slice(0, 1).toLowerCase() + text.slice(1);
}
