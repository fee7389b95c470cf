import { counted } from "../../core/base/printable.ts";
import type { CalendarMonth } from "../../core/domain/months/month.ts";
import {
  type Amount,
  amountOf,
  amountShown,
  amountText,
  roundedParts,
  roundedTo,
  roundShown,
} from "../../core/domain/usage/amount.ts";
import type { CountedOver } from "./price.ts";
import type { StatementLine } from "./statement.ts";

/**
 * A line of a source's monthly bill, over all workspaces (`reporting.usage_bill_monthly`) or of one workspace. Amounts are exact
 * decimal texts.
 */
export interface BillLine {
  /** Null: over all workspaces. */
  readonly workspaceId: string | null;
  readonly workspaceName: string | null;
  readonly service: "traces" | "deployments" | "sandboxes" | "evaluators" | "other";
  readonly line:
    | "charge"
    | "estimate"
    | "correction"
    | "unpriced"
    | "inconsistent"
    | "not_loaded"
    | "not_known"
    | "not_available"
    | "not_reported"
    | "not_charged"
    | "counted_apart"
    | "not_invoiced"
    | "added";
  /** Null: a line that was added, and counts nothing. */
  readonly measure: string | null;
  readonly addedText: string | null;
  /** For a line `unpriced`: the SKUs that have a price on other days only. */
  readonly sku: string | null;
  readonly unitPrice: string | null;
  /**
   * Volume step of the price: it applies above `fromQuantity`, up to `toQuantity`. Null: one price for all, no upper
   * end, or unknown.
   */
  readonly fromQuantity: number | null;
  readonly toQuantity: number | null;
  /** Whether workspaces fill the steps together or separately. Null: no volume price, or unknown. */
  readonly countedOver: CountedOver | null;
  readonly currency: string | null;
  /** The closed month that is corrected, such as `2026-09`. */
  readonly correctedMonth: string | null;
  readonly quantity: string | null;
  /** Null: the cost is unknown, not zero. */
  readonly cost: string | null;
  readonly daysExpected: number | null;
  readonly daysLoaded: number | null;
  readonly daysProved: number | null;
  readonly daysDiffering: number | null;
  readonly unprovedCost: string | null;
  readonly isFinal: boolean;
  readonly isProved: boolean;
  readonly isClosed: boolean;
}

const MEASURE_NAME: Readonly<Record<string, string>> = {
  traces: "Traces",
  longlived: "Long-lived traces",
  shortlived: "Short-lived traces",
  nodes_executed: "Nodes executed",
  agent_runs: "Agent runs",
  agent_uptime_seconds: "Agent uptime (seconds)",
  lcu: "Sandbox compute (LCU)",
  lsu: "Sandbox storage (LSU)",
  compute_standard_units: "Sandbox compute (standard units)",
  storage_standard_units: "Sandbox storage (standard units)",
  spend_usd: "Evaluators, in US dollars",
  deployment_lcu: "Deployment compute (LCU)",
  deployment_lsu: "Deployment storage (LSU)",
};

const UNIT: Readonly<Record<string, string>> = {
  traces: "traces",
  longlived: "traces",
  shortlived: "traces",
  nodes_executed: "nodes",
  agent_runs: "runs",
  agent_uptime_seconds: "seconds",
  lcu: "LCU",
  lsu: "LSU",
  compute_standard_units: "standard units",
  storage_standard_units: "standard units",
  spend_usd: "USD",
  deployment_lcu: "LCU",
  deployment_lsu: "LSU",
};

/** Returns the unit in which a measure is counted. */
export function unitOf(measure: string | null): string | null {
  return measure === null ? null : (UNIT[measure] ?? measure);
}

export function lineName(one: BillLine): string {
  const { line, measure, service, correctedMonth, addedText } = one;
  if (addedText !== null || measure === null) return addedText ?? "";
  const isOfAll = line === "not_loaded" || line === "not_known";
  if (isOfAll && service === "deployments") return "Deployment usage";
  if (isOfAll && service === "sandboxes") return "Sandbox usage";
  if (isOfAll && service === "evaluators") return "Evaluators";
  const name = [MEASURE_NAME[measure] ?? measure, volumeOf(one)].filter(Boolean).join(", ");
  return line === "correction" ? `${name}, correction of ${correctedMonth}` : name;
}

/** The part of a month's usage that the price is for, such as `first 100,000`. Undefined: all. */
function volumeOf({ fromQuantity, toQuantity, countedOver }: BillLine): string | undefined {
  if (fromQuantity === null) return undefined;
  const [from, to] = [fromQuantity, toQuantity].map((quantity) => quantity?.toLocaleString("en-US"));
  const whose = countedOver === "workspace" ? " of each workspace" : "";
  // If a price is no longer stored, only the day on which it began is known.
  if (to === undefined && countedOver === null)
    return fromQuantity === 0 ? "first tier" : `tier above ${from}`;
  if (fromQuantity === 0) return to === undefined ? "first tier" : `first ${to}${whose}`;
  return `above ${from}${to === undefined ? "" : ` up to ${to}`}${whose}`;
}

export function lineState(one: BillLine): string {
  const { line, sku, daysExpected, daysLoaded, isFinal, isProved, isClosed } = one;
  if (line === "added") return "entered by hand";
  if (line === "not_reported") return "charged, and the platform does not report it";
  if (line === "not_charged") return "not charged: the platform charges LCU and LSU instead";
  if (line === "counted_apart")
    return "counted separately from LCU and LSU, on days with a number for every sandbox; no price charges it";
  if (line === "not_available") return "not known: the platform gave no number on some days";
  if (line === "not_invoiced") return "the platform's estimate from model prices: on no invoice";
  if (line === "inconsistent") return "not known: more long-lived traces than traces on some days";
  if (line === "not_known") return "not known: no response shows whether the server counts it";
  if (line === "not_loaded") {
    if (daysExpected === null || daysLoaded === null)
      return "not known: no day of it has ended, or no workspace is known";
    const missing = (daysExpected - daysLoaded).toLocaleString("en-US");
    return `${missing} of ${daysExpected.toLocaleString("en-US")} workspace days are not loaded`;
  }
  if (line === "unpriced") return sku === null ? "no price" : `no price of ${sku} on these days`;
  if (line === "estimate") return "no invoice counts it: LCU and LSU are charged";
  if (isClosed) return "closed";
  if (!isFinal) return "may still change";
  return isProved ? "final and proved" : `final, not proved${whyUnproved(one)}`;
}

function whyUnproved({ unprovedCost, currency, daysExpected, daysProved, daysDiffering }: BillLine): string {
  if (unprovedCost === null || currency === null) return "";
  const amount = amountOf(unprovedCost);
  const days =
    daysDiffering !== null && daysDiffering > 0
      ? `${counted(daysDiffering, "workspace day")} ${daysDiffering === 1 ? "differs" : "differ"}`
      : daysExpected !== null &&
        daysProved !== null &&
        `nothing was compared with ${counted(daysExpected - daysProved, "workspace day")}`;
  const said = [
    amount !== 0n && `${roundShown(amount, currency)} ${currency} is on days without proof`,
    days,
  ].filter(Boolean);
  return said.length === 0 ? "" : `: ${said.join(", ")}`;
}

export function shownAmount(text: string | null): string | null {
  return text === null ? null : amountShown(amountOf(text));
}

export function billTotals(lines: readonly BillLine[]): { currency: string; cost: Amount }[] {
  const sums = new Map<string, Amount>();
  for (const { currency, cost } of lines) {
    if (currency !== null && cost !== null) sums.set(currency, (sums.get(currency) ?? 0n) + amountOf(cost));
  }
  return [...sums]
    .map(([currency, cost]) => ({ currency, cost }))
    .sort((a, b) => (a.currency < b.currency ? -1 : 1));
}

/** Costs of lines, rounded to cents so that those of each currency add up to their rounded total. */
export function roundedCosts<L extends { readonly currency: string | null; readonly cost: string | null }>(
  lines: readonly L[],
): ReadonlyMap<L, Amount> {
  const rounded = new Map<L, Amount>();
  const priced = lines.filter(({ currency, cost }) => currency !== null && cost !== null);
  for (const [currency, some] of Map.groupBy(priced, (line) => line.currency ?? "")) {
    const parts = roundedParts(
      currency,
      some.map(({ cost }) => amountOf(cost ?? "0")),
    );
    some.forEach((line, n) => void rounded.set(line, parts[n] as Amount));
  }
  return rounded;
}

export const NOT_REPORTED = "seats, Fleet, Engine, tuned evaluators, taxes, discounts and credits";

export interface Bill {
  readonly source: string;
  readonly organization: string | null;
  readonly month: CalendarMonth;
  /** First loaded day, ISO. */
  readonly dataStart: string;
  /** When the bill was read, ISO. */
  readonly asOf: string;
  /** Null: the month is open. `by` null: not recorded. */
  readonly closed: { readonly at: string; readonly by: string | null } | null;
  readonly lines: readonly BillLine[];
  readonly unloaded: readonly UnloadedWorkspace[];
  /** In no total. */
  readonly alsoReported: readonly StatementLine[];
  readonly before: readonly CurrencyCost[];
  readonly budgets: readonly CurrencyCost[];
}

export interface CurrencyCost {
  readonly currency: string;
  /** Exact decimal. */
  readonly cost: string;
}

export function describeTotal({ lines, unloaded, month, dataStart }: Bill): string {
  if (lines.length === 0) {
    return month.end <= dataStart
      ? `Not known: the data starts on ${dataStart}. USAGE_DATA_START moves it earlier.`
      : "No usage.";
  }
  const totals = billTotals(lines).map(
    ({ currency, cost }) => `${roundShown(roundedTo(currency, cost), currency)} ${currency}`,
  );
  if (totals.length === 0) return "Total: not known.";
  return `Total: ${totals.join(" and ")}, ${totalState(lines, unloaded)}.\nAn invoice also has amounts that no API reports: ${NOT_REPORTED}. \`usage-etl bill add\` adds such a line.`;
}

/** Whether something that is charged has no cost on the bill. */
export function isIncomplete({ lines, unloaded, month, dataStart }: Bill): boolean {
  const isBefore = lines.length === 0 && month.end <= dataStart;
  return isBefore || unloaded.length > 0 || lines.some(isWithoutCost);
}

/** No bill contains evaluator spend. */
function isWithoutCost({ service, line, cost }: BillLine): boolean {
  return cost === null && service !== "evaluators" && line !== "not_charged" && line !== "counted_apart";
}

export function namesWithoutCost(lines: readonly BillLine[]): string[] {
  return [...new Set(lines.filter(isWithoutCost).map(lineName))];
}

function chargedOf(lines: readonly BillLine[]): readonly BillLine[] {
  return lines.filter(
    ({ service, line }) => service !== "evaluators" && line !== "added" && line !== "counted_apart",
  );
}

export function isBillFinal(lines: readonly BillLine[]): boolean {
  const charged = chargedOf(lines);
  return charged.length > 0 && charged.every(({ isFinal }) => isFinal);
}

export function isBillProved(lines: readonly BillLine[]): boolean {
  return isBillFinal(lines) && chargedOf(lines).every(({ isProved }) => isProved);
}

export function totalState(all: readonly BillLine[], unloaded: readonly UnloadedWorkspace[]): string {
  return [
    stateOfLines(chargedOf(all)),
    unloaded.length > 0 && "without workspaces that no sync loads",
    all.some(({ line }) => line === "added") && "with lines entered by hand",
  ]
    .filter(Boolean)
    .join(", ");
}

function stateOfLines(lines: readonly BillLine[]): string {
  if (lines.some(isWithoutCost)) return "without the lines that have no cost";
  if (lines.some(({ line }) => line === "estimate")) return "with estimates that no invoice has";
  if (lines.every(({ isClosed }) => isClosed)) return "closed";
  if (!lines.every(({ isFinal }) => isFinal)) return "may still change";
  return lines.every(({ isProved }) => isProved) ? "final and proved" : "final, and not all of it proved";
}

export interface UnloadedWorkspace {
  /** The platform's id; empty for usage without a workspace. */
  readonly workspaceId: string;
  readonly name: string | null;
  readonly traces: number;
  /** Null: not known. */
  readonly longlived: number | null;
  /** The month whose traces these are, if those of the bill's month are not known yet. */
  readonly asIn?: string;
  /** Price of this usage at the prices of the month. Empty: no price applies, or its retention tiers are not known. */
  readonly costs: readonly CurrencyCost[];
}

/** Undefined: the bill contains all known usage. */
export function describeUnloaded(unloaded: readonly UnloadedWorkspace[]): string | undefined {
  const [first, ...others] = unloaded;
  if (first === undefined) return undefined;
  const traces = unloaded.reduce((sum, one) => sum + one.traces, 0);
  const more = others.length === 0 ? "" : ` and ${others.length} more`;
  const costs = costsText(sumOf(unloaded));
  const about = costs === "" ? "" : ` (about ${costs} at the prices of the month)`;
  return `Not in this bill: ${counted(traces, "trace")}${about} of workspace ${first.name ?? (first.workspaceId || "(none)")}${more}, which no sync loads. Give the key access to the workspace, or add it to USAGE_WORKSPACE_IDS where that is set.`;
}

function sumOf(unloaded: readonly UnloadedWorkspace[]): CurrencyCost[] {
  return unloaded.some(({ costs }) => costs.length === 0)
    ? []
    : addedUp(unloaded.flatMap(({ costs }) => costs));
}

function addedUp(costs: readonly CurrencyCost[]): CurrencyCost[] {
  return [...Map.groupBy(costs, ({ currency }) => currency)].map(([currency, some]) => ({
    currency,
    cost: amountText(some.reduce((sum, { cost }) => sum + amountOf(cost), 0n)),
  }));
}

export interface BillGaps {
  /** The part of the total without proof, by currency. */
  readonly unproved: readonly CurrencyCost[];
  /** Names of its lines, such as `Sandbox compute (LCU)`. */
  readonly unprovedNames: readonly string[];
  /** The known part of the amount that the total lacks: usage of workspaces that no sync loads. */
  readonly missing: readonly CurrencyCost[];
  /** Lines that are charged, without a known cost. */
  readonly withoutCost: readonly string[];
}

/** Returns the unproved and the missing parts of the total of a bill. */
export function gapsOf({ lines, unloaded }: Pick<Bill, "lines" | "unloaded">): BillGaps {
  const unproved = lines.flatMap((one) => {
    const { currency, unprovedCost } = one;
    if (currency === null || unprovedCost === null || amountOf(unprovedCost) === 0n) return [];
    return [{ name: lineName({ ...one, fromQuantity: null }), currency, cost: unprovedCost }];
  });
  return {
    unproved: addedUp(unproved),
    unprovedNames: [...new Set(unproved.map(({ name }) => name))],
    missing: addedUp(unloaded.flatMap(({ costs }) => costs)),
    withoutCost: namesWithoutCost(lines),
  };
}

export function costsText(costs: readonly CurrencyCost[]): string {
  return costs
    .map(({ currency, cost }) => `${roundShown(amountOf(cost), currency)} ${currency}`)
    .join(" and ");
}
