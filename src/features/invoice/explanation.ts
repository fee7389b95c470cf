import { counted } from "../../core/base/printable.ts";
import { daysText } from "../../core/domain/months/month.ts";
import { amountOf, amountShown } from "../../core/domain/usage/amount.ts";
import { linesOf, tableOf, toTheRight } from "../../terminal/output.ts";
import { csvCell } from "../export/table-file.ts";
import type { Comparison, StoredCause, StoredMatchLine } from "./comparison.store.ts";
import type { Cause, Unexplained } from "./explain.ts";
import { LINE_STATES, type LineState, type Suggestion } from "./match.ts";

const CAUSE_WORDS: Readonly<Record<Cause, string>> = {
  rounding: "rounding of each line to the currency's smallest unit",
  period: "another period than the month of our bill",
  changes: "usage that changed after the day of issue",
  upgrades: "upgrades of traces of an earlier month",
  days_open: "days that are not loaded or not final here",
  unread_workspace: "a workspace that no sync loads",
  counted_over: "volume tiers counted otherwise, by organization or by workspace",
  price: "other prices",
  not_reported: "usage that no API reports",
  seat: "seats",
  credit: "credits and discounts",
  tax: "tax",
  adjustment: "commitments and adjustments",
};

const WHY_WORDS: Readonly<Record<Unexplained["why"], string>> = {
  usage: "the invoice has another quantity",
  tiers: "the same quantity is in other tiers",
  arithmetic: "the amount is not quantity times price",
  only_here: "only our bill has it",
  total: "the invoice's total is not the sum of its lines",
  no_rule: "no rule says what the line charges",
  no_period: "the line has no period, and the invoice no day of issue",
  no_price: "no price is imported for it",
  several_skus: "several SKUs count it, and the rule names none",
  currency: "our prices are in another currency",
  not_reported: CAUSE_WORDS.not_reported,
  seat: CAUSE_WORDS.seat,
  credit: CAUSE_WORDS.credit,
  tax: CAUSE_WORDS.tax,
  adjustment: CAUSE_WORDS.adjustment,
};

const STATE_WORDS: Readonly<Record<LineState, string>> = {
  agrees: "agrees",
  within_tolerance: "within tolerance",
  quantity_differs: "quantity differs",
  price_differs: "price differs",
  only_on_invoice: "only on the invoice",
  only_here: "only on our bill",
  not_comparable: "not comparable",
};

/** A cause in words. */
export interface CauseRow {
  readonly why: string;
  readonly what: string;
  readonly period: string;
  /** Exact decimals. */
  readonly quantity: string | null;
  readonly amount: string;
}

export function causeRows({ causes }: Pick<Comparison, "causes">): CauseRow[] {
  return causes.map((one) => {
    const { sku, workspaceId, workspaceName, lineNumber, lineText, quantity, amount } = one;
    const line = lineNumber === null ? null : `line ${lineNumber}${sku === null ? `, ${lineText}` : ""}`;
    return {
      why: causeText(one),
      what: [sku, workspaceName ?? workspaceId, line].filter((part) => part !== null).join(", "),
      period: periodText(one),
      quantity,
      amount,
    };
  });
}

function causeText({ cause, why, days }: StoredCause): string {
  if (cause === "unexplained") return `NOT EXPLAINED: ${why === null ? "" : WHY_WORDS[why]}`;
  if (days === null) return CAUSE_WORDS[cause];
  const parts = [
    days.notLoaded > 0 && `${counted(days.notLoaded, "day")} not loaded`,
    days.notFinal > 0 && `${counted(days.notFinal, "day")} not final`,
  ];
  return `${parts.filter(Boolean).join(", ")} here`;
}

function periodText({ periodStart, periodEnd }: Pick<StoredCause, "periodStart" | "periodEnd">): string {
  return periodStart === null || periodEnd === null ? "" : daysText({ from: periodStart, to: periodEnd });
}

export function stateText({ state, why }: Pick<StoredMatchLine, "state" | "why">): string {
  return why === null ? STATE_WORDS[state] : `${STATE_WORDS[state]}: ${WHY_WORDS[why]}`;
}

export const shown = (decimal: string | null) => (decimal === null ? "" : amountShown(amountOf(decimal)));

/** The difference in a sentence, such as `The invoice is 424.09 USD higher than our bill.` */
export function differenceText({ total, bill, difference, invoice: { currency } }: Comparison): string {
  const parts = `${shown(total)} ${currency}; our bill of the same usage, ${shown(bill)} ${currency}`;
  if (difference === "0") return `${parts}. They are equal.`;
  const word = difference.startsWith("-") ? "lower" : "higher";
  return `${parts}. The invoice is ${shown(difference.replace("-", ""))} ${currency} ${word}.`;
}

export function settlementText({ settlement, remainder, invoice }: Comparison): string | undefined {
  if (settlement === null) return undefined;
  const { settledAt, settledBy, reason, remainder: accepted } = settlement;
  const changed =
    accepted === remainder
      ? ""
      : ` Since then the part that is not explained has changed from ${accepted} to ${remainder} ${invoice.currency}.`;
  return `Settled on ${settledAt.slice(0, 10)} by ${settledBy}${reason === null ? "" : `: ${reason}`}.${changed}`;
}

export function describeExplanation(
  compared: Comparison,
  {
    lines,
    suggestions,
  }: { lines: readonly StoredMatchLine[] | undefined; suggestions: readonly Suggestion[] },
): string {
  const { number, issuer, issuedOn, status, currency } = compared.invoice;
  const rows = causeRows(compared);
  const counts = LINE_STATES.flatMap((state) => {
    const count = compared.lineCounts[state];
    return count === undefined ? [] : [`${count} ${STATE_WORDS[state]}`];
  });
  return linesOf(
    `Invoice ${number} of ${issuer}${issuedOn === null ? "" : `, issued ${issuedOn}`}${status === "issued" ? "" : ` (${status})`}: ${differenceText(compared)}`,
    rows.length > 0 &&
      tableOf(rows, {
        why: "why",
        what: "what",
        period: rows.some(({ period }) => period !== "") && "period",
        "usage more":
          rows.some(({ quantity }) => quantity !== null) &&
          toTheRight(rows, ({ quantity }) => shown(quantity)),
        [`higher by, ${currency}`]: toTheRight(rows, ({ amount }) => shown(amount)),
      }),
    `Not explained: ${shown(compared.remainder)} ${currency}.`,
    settlementText(compared),
    `Lines: ${counts.join(", ")}.${lines === undefined ? " --lines shows them." : ""}`,
    lines && describeLines(lines),
    suggestions.map(
      ({ text, quantity, measure, sku, period }) =>
        `"${text}" has exactly our usage of ${measure} in ${daysText(period)} (${quantity}). If it charges that, add this rule: ${[text, measure, sku].map((cell) => csvCell(cell)).join(",")}`,
    ),
  );
}

function describeLines(lines: readonly StoredMatchLine[]): string {
  const right = (key: "quantity" | "unitPrice" | "amount" | "quantityHere" | "unitPriceHere" | "costHere") =>
    toTheRight(lines, (line) => shown(line[key]));
  return tableOf(lines, {
    line: ({ lineNumber }) => lineNumber ?? "-",
    text: "text",
    workspace: ({ workspaceId, workspaceName }) => workspaceName ?? workspaceId ?? "",
    quantity: right("quantity"),
    price: right("unitPrice"),
    amount: right("amount"),
    "quantity here": right("quantityHere"),
    "price here": right("unitPriceHere"),
    "cost here": right("costHere"),
    state: stateText,
  });
}

/** Decimals are texts. */
export function explanationData(compared: Comparison) {
  const { invoice, causes, lineCounts, settlement, ...amounts } = compared;
  const { invoiceId: _, sourceId: __, ...about } = invoice;
  const of = (isExplained: boolean) =>
    causes
      .filter(({ cause }) => (cause !== "unexplained") === isExplained)
      .map(({ lineText: ___, ...one }) => one);
  return { ...about, ...amounts, causes: of(true), unexplained: of(false), lineCounts, settlement };
}
