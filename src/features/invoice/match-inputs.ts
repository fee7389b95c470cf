import { type Days, daysBetween, monthStart, monthsOfDays } from "../../core/domain/time/days.ts";
import type { CountedOver, PricedMeasure } from "../costs/price.ts";
import type { InvoiceStatus, LineKind } from "./invoice.ts";
import { type InvoiceRule, monthOf, ruleOf } from "./rule.ts";

/** All that a match follows from, as it is stored. Decimals are texts, days are ISO dates, and an end is not included. */
export interface MatchInputs {
  readonly invoice: MatchedInvoice;
  readonly lines: readonly StoredLine[];
  readonly rules: readonly InvoiceRule[];
  /** Known workspaces of the source. */
  readonly workspaces: readonly { readonly id: string; readonly name: string | null }[];
  readonly charges: readonly Charged[];
  readonly prices: readonly StoredPrice[];
  readonly changes: readonly Changed[];
  readonly upgrades: readonly Changed[];
  readonly openDays: readonly OpenDays[];
  readonly unread: readonly Unread[];
  /** SKUs or measures of a period that other invoices charge. */
  readonly elsewhere: readonly (Days & { readonly measure: string })[];
  /** False: an earlier invoice of the period shows the usage that no invoice charges. */
  readonly isFirst: boolean;
}

export interface MatchedInvoice {
  readonly invoiceId: number;
  readonly issuer: string;
  readonly number: string;
  readonly status: InvoiceStatus;
  readonly issuedOn: string | null;
  readonly currency: string;
  readonly corrects: string | null;
  readonly total: string;
}

export interface StoredLine {
  readonly lineNumber: number;
  readonly text: string;
  readonly sumText: string | null;
  readonly kind: LineKind;
  readonly quantity: string | null;
  readonly unit: string | null;
  readonly unitPrice: string | null;
  readonly amount: string;
  readonly periodStart: string | null;
  readonly periodEnd: string | null;
  readonly workspace: string | null;
}

interface Charged extends Days {
  /** The bill of the month that a line is compared with; else the days of the line's own period. */
  readonly isBill: boolean;
  readonly workspaceId: string;
  readonly measure: PricedMeasure;
  readonly sku: string;
  readonly priceId: number;
  readonly fromQuantity: string;
  readonly unitPrice: string;
  readonly currency: string;
  readonly quantity: string;
}

interface StoredPrice {
  readonly priceId: number;
  readonly sku: string;
  readonly measure: PricedMeasure;
  readonly currency: string;
  readonly scope: string;
  readonly isOfWorkspace: boolean;
  readonly countedOver: CountedOver;
  readonly validFrom: string;
  readonly validTo: string | null;
  readonly tiers: readonly { readonly from: string; readonly price: string }[];
}

/** What the usage of a period had more or less, net. */
interface Changed extends Days {
  readonly workspaceId: string;
  readonly measure: PricedMeasure;
  readonly quantity: string;
}

interface OpenDays extends Days {
  readonly workspaceId: string;
  readonly measure: PricedMeasure;
  readonly daysNotLoaded: number;
  readonly daysNotFinal: number;
}

/** A workspace with usage that no sync loads. */
interface Unread extends Days {
  readonly workspaceId: string;
  readonly name: string | null;
  readonly measure: PricedMeasure;
  readonly quantity: string;
}

/** Why a line has nothing to be compared with. */
export type WhyNot =
  | "no_rule"
  | "no_period"
  | "no_price"
  | "several_skus"
  | "currency"
  | "not_reported"
  | "seat"
  | "credit"
  | "tax"
  | "adjustment";

export type Target =
  | {
      readonly rule: InvoiceRule;
      readonly measure: PricedMeasure;
      readonly sku: string | null;
      readonly period: Days;
    }
  | { readonly rule: InvoiceRule | undefined; readonly why: WhyNot };

const OF_KIND: Readonly<Record<Exclude<LineKind, "usage">, WhyNot>> = {
  seat: "seat",
  commitment: "adjustment",
  drawdown: "credit",
  credit: "credit",
  discount: "credit",
  tax: "tax",
  adjustment: "adjustment",
};

/** What a line charges by the first rule that matches it. */
export function targetOf(
  line: StoredLine,
  { invoice, rules }: Pick<MatchInputs, "invoice" | "rules">,
): Target {
  const rule = ruleOf(rules, line, invoice.issuedOn);
  if (rule === undefined || rule.measure === null)
    return { rule, why: line.kind === "usage" ? "no_rule" : OF_KIND[line.kind] };
  if (rule.measure === "seat" || rule.measure === "not_reported") return { rule, why: rule.measure };
  if (line.kind !== "usage") return { rule, why: OF_KIND[line.kind] };
  // The usage was compared with the invoice that this one corrects.
  if (invoice.corrects !== null) return { rule, why: "credit" };
  const period =
    line.periodStart === null || line.periodEnd === null
      ? monthOf(rule.period, invoice.issuedOn)
      : { from: line.periodStart, to: line.periodEnd };
  if (period === null) return { rule, why: "no_period" };
  return { rule, measure: rule.measure, sku: rule.sku, period };
}

/** The days whose bill a period is compared with: whole months as they are, else the month with most of its days. */
export function billedDays(period: Days): Days {
  const { from, to } = period;
  if (from === monthStart(from) && to === monthStart(to)) return period;
  const shared = (month: Days) =>
    daysBetween({
      from: [from, month.from].sort()[1] as string,
      to: [to, month.to].sort()[0] as string,
    });
  const months = monthsOfDays(period);
  return months.reduce((best, month) => (shared(month) > shared(best) ? month : best));
}

export function keyOf({ from, to }: Days): string {
  return `${from} ${to}`;
}
