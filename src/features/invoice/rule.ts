import { addMonths, monthStart } from "../../core/domain/time/days.ts";
import { type Amount, amountOf } from "../../core/domain/usage/amount.ts";
import { PRICED_MEASURES } from "../costs/price.ts";
import type { LineKind } from "./invoice.ts";

/** Beside the measures: `seat`, and `not_reported` for usage that no API of the platform reports. */
export const RULE_MEASURES = [...PRICED_MEASURES, "seat", "not_reported"] as const;
type RuleMeasure = (typeof RULE_MEASURES)[number];

/** How the issuer rounds each tier of each workspace to the currency's smallest unit. */
export const ROUNDINGS = ["half_up", "down", "none"] as const;
export type Rounding = (typeof ROUNDINGS)[number];

/** The month of a line without a period of its own: that before the day of issue, or that of the day of issue. */
export const RULE_PERIODS = ["previous_month", "month_of_issue"] as const;
export type RulePeriod = (typeof RULE_PERIODS)[number];

/** Says which lines charge which measure and SKU. The first rule that matches a line decides. */
export interface InvoiceRule {
  /** The text of the line, or of the sum row above it. `*` stands for any text; case and spacing do not matter. */
  readonly text: string;
  readonly kind: LineKind | null;
  readonly unit: string | null;
  /** The rule is for lines whose period begins on one of these days (ISO). The end is not included. */
  readonly from: string | null;
  readonly to: string | null;
  readonly period: RulePeriod;
  /** Null: the kind of the line says what it charges. */
  readonly measure: RuleMeasure | null;
  /** Null: the one SKU that has a price for the measure. */
  readonly sku: string | null;
  readonly rounding: Rounding;
  /** A difference up to the greater of both is within tolerance. Plain decimals; null: none. */
  readonly toleranceAmount: string | null;
  readonly tolerancePercent: string | null;
  /** How charge back divides the line: `usage`, `even`, or shares in percent such as `search=60;chat=40`. Null: by usage. */
  readonly divide: string | null;
}

const ANY_LINE: Omit<InvoiceRule, "text" | "measure"> = {
  ...{ kind: null, unit: null, from: null, to: null, period: "previous_month", sku: null },
  ...{ rounding: "half_up", toleranceAmount: null, tolerancePercent: null, divide: null },
};

/** Texts that published documents and pictures of the platform's invoices and metrics show. Rules of a file precede them. */
export const SHIPPED_RULES: readonly InvoiceRule[] = (
  [
    ["LangSmith Traces (Extended Data Retention Upgrades)", "longlived", null],
    ["LangSmith Traces", "traces", null],
    // From October 2026 on, the platform charges deployments by units that it does not report.
    ["LangSmith Deployment Nodes Executed", "nodes_executed", "2026-10-01"],
    ["LangSmith Deployment Runs", "agent_runs", "2026-10-01"],
    ["LangSmith Deployment*", "not_reported", null],
    ["LangSmith Fleet*", "not_reported", null],
    ["LangSmith Engine*", "not_reported", null],
    // We guess the texts of sandboxes.
    ["*Sandbox Compute*", "lcu", null],
    ["*Sandbox Storage*", "lsu", null],
    ["*Seat", "seat", null],
    ["*Seats", "seat", null],
    ["*Seats (*", "seat", null],
  ] as const
).map(([text, measure, to]) => ({ ...ANY_LINE, text, measure, to }));

interface RuledLine {
  readonly text: string;
  /** Text of the sum row whose part the line is. */
  readonly sumText: string | null;
  readonly kind: LineKind;
  readonly unit: string | null;
  readonly periodStart: string | null;
}

/** `issuedOn`: decides the period of a line without one. */
export function ruleOf<Rule extends InvoiceRule>(
  rules: readonly Rule[],
  line: RuledLine,
  issuedOn: string | null,
): Rule | undefined {
  return rules.find((rule) => {
    const day = line.periodStart ?? monthOf(rule.period, issuedOn)?.from ?? null;
    return (
      (matches(rule.text, line.text) || (line.sumText !== null && matches(rule.text, line.sumText))) &&
      (rule.kind === null || rule.kind === line.kind) &&
      (rule.unit === null || spaced(rule.unit) === spaced(line.unit ?? "")) &&
      (rule.from === null || (day !== null && day >= rule.from)) &&
      (rule.to === null || (day !== null && day < rule.to))
    );
  });
}

/** Days of the month that a line without a period charges. */
export function monthOf(period: RulePeriod, issuedOn: string | null): { from: string; to: string } | null {
  if (issuedOn === null) return null;
  const of = (months: number) => addMonths(monthStart(issuedOn), months);
  return period === "previous_month" ? { from: of(-1), to: of(0) } : { from: of(0), to: of(1) };
}

/** The quantities between which the tier of a text such as `Tier 1 (0 - 10000)` or `Tier 2 (> 10000)` lies, as written. */
export function tierOf(text: string): { readonly from: Amount; readonly to: Amount | null } | null {
  const [, above, from = "", to] = /\((?:>\s*([\d,]+)|([\d,]+)\s*[-–]\s*([\d,]+))\)/.exec(text) ?? [];
  const start = (above ?? from).replaceAll(",", "");
  if (start === "") return null;
  return { from: amountOf(start), to: to === undefined ? null : amountOf(to.replaceAll(",", "")) };
}

const PATTERNS = new Map<string, RegExp>();

function matches(pattern: string, text: string): boolean {
  const known = PATTERNS.get(pattern);
  const expression = known ?? new RegExp(`^${spaced(pattern).split("*").map(escaped).join(".*")}$`, "s");
  if (known === undefined) PATTERNS.set(pattern, expression);
  return expression.test(spaced(text));
}

function spaced(text: string): string {
  return text.normalize("NFKC").trim().toLowerCase().replace(/\s+/g, " ");
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
