import { counted } from "../../core/base/printable.ts";
import type { CalendarMonth } from "../../core/domain/months/month.ts";
import { type Amount, amountOf, amountShown } from "../../core/domain/usage/amount.ts";
import type { CountedOver } from "./price.ts";

/** A line of a source's monthly bill over all workspaces (`reporting.usage_bill_monthly`). Amounts are exact decimal texts. */
export interface BillLine {
  readonly service: "traces" | "deployments" | "sandboxes" | "evaluators";
  readonly line:
    | "charge"
    | "estimate"
    | "correction"
    | "unpriced"
    | "inconsistent"
    | "not_loaded"
    | "not_known"
    | "not_reported"
    | "not_charged"
    | "not_invoiced";
  readonly measure: string;
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
  agent_uptime_seconds: "Agent uptime, in seconds",
  lcu: "Compute units (LCU) of sandboxes",
  lsu: "Storage units (LSU) of sandboxes",
  spend_usd: "Evaluators, in US dollars",
  deployment_lcu: "Compute units (LCU) of deployments",
  deployment_lsu: "Storage units (LSU) of deployments",
};

export function lineName(one: BillLine): string {
  const { line, measure, service, correctedMonth } = one;
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
  if (line === "not_reported") return "charged, and the platform does not report it";
  if (line === "not_charged") return "not charged: the platform charges LCU and LSU instead";
  if (line === "not_invoiced") return "the platform's estimate from model prices: on no invoice";
  if (line === "inconsistent") return "not known: more long-lived traces than traces on some days";
  if (line === "not_known") return "not known: no response says whether the server counts it";
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
  return isProved ? "final and proved" : "final, not proved";
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

export const NOT_REPORTED = "seats, Fleet, Engine, tuned evaluators, taxes, discounts and credits";

export interface BillContext {
  readonly month: CalendarMonth;
  /** First loaded day, ISO. */
  readonly dataStart: string;
  readonly unloaded: readonly UnloadedWorkspace[];
}

export function describeTotal(
  lines: readonly BillLine[],
  { month, dataStart, unloaded }: BillContext,
): string {
  if (lines.length === 0) {
    return month.end <= dataStart
      ? `Not known: the data starts on ${dataStart}. USAGE_DATA_START moves it earlier.`
      : "No usage.";
  }
  const totals = billTotals(lines).map(({ currency, cost }) => `${amountShown(cost)} ${currency}`);
  if (totals.length === 0) return "Total: not known.";
  return `Total: ${totals.join(" and ")}, ${totalState(lines, unloaded)}.\nAn invoice also has what no API reports: ${NOT_REPORTED}.`;
}

/** No bill contains evaluator spend. */
function isWithoutCost({ service, line, cost }: BillLine): boolean {
  return cost === null && service !== "evaluators" && line !== "not_charged";
}

export function namesWithoutCost(lines: readonly BillLine[]): string[] {
  return [...new Set(lines.filter(isWithoutCost).map(lineName))];
}

function chargedOf(lines: readonly BillLine[]): readonly BillLine[] {
  return lines.filter(({ service }) => service !== "evaluators");
}

/** Returns false for a bill without charged lines. */
export function isBillFinal(lines: readonly BillLine[]): boolean {
  const charged = chargedOf(lines);
  return charged.length > 0 && charged.every(({ isFinal }) => isFinal);
}

export function isBillProved(lines: readonly BillLine[]): boolean {
  return isBillFinal(lines) && chargedOf(lines).every(({ isProved }) => isProved);
}

export function totalState(all: readonly BillLine[], unloaded: readonly UnloadedWorkspace[]): string {
  const state = stateOfLines(chargedOf(all));
  return unloaded.length === 0 ? state : `${state}, without workspaces that no sync loads`;
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
}

/** Undefined: the bill contains all known usage. */
export function describeUnloaded(unloaded: readonly UnloadedWorkspace[]): string | undefined {
  const [first, ...others] = unloaded;
  if (first === undefined) return undefined;
  const traces = unloaded.reduce((sum, one) => sum + one.traces, 0);
  const more = others.length === 0 ? "" : ` and ${others.length} more`;
  return `Not in this bill: ${counted(traces, "trace")} of workspace ${first.name ?? (first.workspaceId || "(none)")}${more}, which no sync loads. Give the key access to the workspace, or add it to USAGE_WORKSPACE_IDS where that is set.`;
}
