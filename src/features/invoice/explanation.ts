import { counted } from "../../core/base/printable.ts";
import { daysText } from "../../core/domain/months/month.ts";
import type { Days } from "../../core/domain/time/days.ts";
import { type Amount, amountShown, amountText } from "../../core/domain/usage/amount.ts";
import { linesOf, tableOf, toTheRight } from "../../terminal/output.ts";
import type { Cause, NamedCause, Unexplained } from "./explain.ts";
import type { ExplainedInvoice } from "./explain-invoice.ts";
import { LINE_STATES, type LineState, type MatchedLine } from "./match.ts";
import type { WhyNot } from "./match-inputs.ts";

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

/** One row of an explanation: a cause, or a part of the remainder. */
export interface ExplanationRow {
  readonly why: string;
  readonly what: string;
  readonly period: string;
  readonly quantity: Amount | null;
  readonly amount: Amount;
  readonly isExplained: boolean;
}

export function causeRows({ inputs, found }: ExplainedInvoice): ExplanationRow[] {
  const names = new Map([
    ...inputs.unread.map((one) => [one.workspaceId, one.name] as const),
    ...inputs.workspaces.map((one) => [one.id, one.name] as const),
  ]);
  const texts = new Map(inputs.lines.map((line) => [line.lineNumber, line.text]));
  const whatOf = ({ sku, workspaceId, lineNumber }: NamedCause | Unexplained) =>
    [
      sku,
      workspaceId === null ? null : (names.get(workspaceId) ?? workspaceId),
      lineNumber === null ? null : `line ${lineNumber}${sku === null ? `, ${texts.get(lineNumber)}` : ""}`,
    ]
      .filter((part) => part !== null)
      .join(", ");
  const rowOf = (one: NamedCause | Unexplained, why: string, isExplained: boolean): ExplanationRow => ({
    ...{ why, what: whatOf(one), period: one.period === null ? "" : daysText(one.period) },
    ...{ quantity: one.quantity, amount: one.amount, isExplained },
  });
  return [
    ...found.causes.map((one) => rowOf(one, causeText(one), true)),
    ...found.unexplained.map((one) => rowOf(one, `NOT EXPLAINED: ${WHY_WORDS[one.why]}`, false)),
  ];
}

function causeText({ cause, days }: NamedCause): string {
  if (days === null) return CAUSE_WORDS[cause];
  const parts = [
    days.notLoaded > 0 && `${counted(days.notLoaded, "day")} not loaded`,
    days.notFinal > 0 && `${counted(days.notFinal, "day")} not final`,
  ];
  return `${parts.filter(Boolean).join(", ")} here`;
}

export function stateText({ state, why }: Pick<MatchedLine, "state" | "why">): string {
  return why === null ? STATE_WORDS[state] : `${STATE_WORDS[state]}: ${WHY_WORDS[why as WhyNot]}`;
}

/** The difference in a sentence, such as `The invoice is 424.09 USD higher than our bill.` */
export function differenceText({ found: { total, bill, currency } }: ExplainedInvoice): string {
  const difference = total - bill;
  const parts = `${amountShown(total)} ${currency}; our bill of the same usage, ${amountShown(bill)} ${currency}`;
  if (difference === 0n) return `${parts}. They are equal.`;
  const [size, word] = difference > 0n ? [difference, "higher"] : [-difference, "lower"];
  return `${parts}. The invoice is ${amountShown(size)} ${currency} ${word}.`;
}

export function settlementText({ settlement, found }: ExplainedInvoice): string | undefined {
  if (settlement === null) return undefined;
  const { settledAt, settledBy, reason, remainder } = settlement;
  const changed =
    remainder === amountText(found.remainder)
      ? ""
      : ` Since then the part that is not explained has changed from ${remainder} to ${amountText(found.remainder)} ${found.currency}.`;
  return `Settled on ${settledAt.slice(0, 10)} by ${settledBy}${reason === null ? "" : `: ${reason}`}.${changed}`;
}

export function describeExplanation(explained: ExplainedInvoice, { lines }: { lines: boolean }): string {
  const { inputs, found } = explained;
  const { number, issuer, issuedOn, status } = inputs.invoice;
  const rows = causeRows(explained);
  const counts = LINE_STATES.flatMap((state) => {
    const count = found.lines.filter((line) => line.state === state).length;
    return count === 0 ? [] : [`${count} ${STATE_WORDS[state]}`];
  });
  return linesOf(
    `Invoice ${number} of ${issuer}${issuedOn === null ? "" : `, issued ${issuedOn}`}${status === "issued" ? "" : ` (${status})`}: ${differenceText(explained)}`,
    rows.length > 0 &&
      tableOf(rows, {
        why: "why",
        what: "what",
        period: rows.some(({ period }) => period !== "") && "period",
        "usage more":
          rows.some(({ quantity }) => quantity !== null) &&
          toTheRight(rows, ({ quantity }) => (quantity === null ? "" : amountShown(quantity))),
        [`higher by, ${found.currency}`]: toTheRight(rows, ({ amount }) => amountShown(amount)),
      }),
    `Not explained: ${amountShown(found.remainder)} ${found.currency}.`,
    settlementText(explained),
    `Lines: ${counts.join(", ")}.${lines ? "" : " --lines shows them."}`,
    lines && describeLines(explained),
    found.suggestions.map(
      ({ text, quantity, measure, sku, period }) =>
        `"${text}" has exactly our usage of ${measure} in ${daysText(period)} (${quantity}). If it charges that, add this rule: ${[text, measure, sku].map(cell).join(",")}`,
    ),
  );
}

function cell(text: string): string {
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function describeLines({ inputs, found }: ExplainedInvoice): string {
  const invoiced = new Map(inputs.lines.map((line) => [line.lineNumber, line]));
  const names = new Map(inputs.workspaces.map(({ id, name }) => [id, name]));
  const lineOf = ({ lineNumber }: MatchedLine) =>
    lineNumber === null ? undefined : invoiced.get(lineNumber);
  const shown = (amount: Amount | null) => (amount === null ? "" : amountShown(amount));
  const right = (value: (line: MatchedLine) => string) => toTheRight(found.lines, value);
  return tableOf(found.lines, {
    line: ({ lineNumber }) => lineNumber ?? "-",
    text: (line) =>
      [lineOf(line)?.sumText, lineOf(line)?.text].filter((part) => part != null).join(", ") ||
      (line.sku ?? ""),
    workspace: ({ workspaceId }) => (workspaceId === null ? "" : (names.get(workspaceId) ?? workspaceId)),
    quantity: right((line) => lineOf(line)?.quantity ?? ""),
    price: right((line) => lineOf(line)?.unitPrice ?? ""),
    amount: right((line) => lineOf(line)?.amount ?? ""),
    "quantity here": right(({ quantityHere }) => shown(quantityHere)),
    "price here": right(({ unitPriceHere }) => shown(unitPriceHere)),
    "cost here": right(({ costHere }) => shown(costHere)),
    state: stateText,
  });
}

/** Decimals are texts. */
export function explanationData({ source, inputs, found, settlement }: ExplainedInvoice) {
  const { number, issuer, issuedOn, status } = inputs.invoice;
  const text = (amount: Amount | null) => (amount === null ? null : amountText(amount));
  const periodOf = (period: Days | null) => ({
    periodStart: period?.from ?? null,
    periodEnd: period?.to ?? null,
  });
  return {
    ...{ source, number, issuer, issuedOn, status, currency: found.currency },
    ...{ total: text(found.total), bill: text(found.bill), difference: text(found.total - found.bill) },
    causes: found.causes.map(({ period, quantity, amount, ...one }) => ({
      ...{ ...one, ...periodOf(period), quantity: text(quantity), amount: text(amount) },
    })),
    remainder: text(found.remainder),
    unexplained: found.unexplained.map(({ period, quantity, amount, ...one }) => ({
      ...{ ...one, ...periodOf(period), quantity: text(quantity), amount: text(amount) },
    })),
    lines: found.lines.map(
      ({ period, billed: _, rule: __, quantityHere, unitPriceHere, costHere, ...one }) => ({
        ...{ ...one, ...periodOf(period), quantityHere: text(quantityHere) },
        ...{ unitPriceHere: text(unitPriceHere), costHere: text(costHere) },
      }),
    ),
    suggestions: found.suggestions.map(({ period, ...one }) => ({ ...one, ...periodOf(period) })),
    settlement,
  };
}
