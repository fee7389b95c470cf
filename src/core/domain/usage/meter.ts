import { GROUPINGS, type GroupBy } from "./grouping.ts";

/**
 * A kind of usage, and for traces a retention tier. Usage of different meters is never added up: `longlived` and
 * `shortlived` are parts of `traces`.
 */
export const METERS = [
  "traces",
  "longlived",
  "shortlived",
  "deployments",
  "sandboxes",
  "evaluators",
] as const;
export type Meter = (typeof METERS)[number];

/**
 * Measures of records with their digits after the point; they are stored as whole numbers (amount.ts).
 * `agent_uptime_seconds` is a sum over replicas. `lcu` and `lsu` are compute and storage units, and
 * standard units are other ones, never added to them. `spend_usd` is the platform's estimate from model prices and is on no
 * invoice.
 */
export const MEASURE_DIGITS = {
  traces: 0,
  nodes_executed: 0,
  agent_runs: 0,
  agent_uptime_seconds: 0,
  lcu: 6,
  lsu: 6,
  compute_standard_units: 6,
  storage_standard_units: 6,
  spend_usd: 9,
  evaluated_traces: 0,
} as const;
export type Measure = keyof typeof MEASURE_DIGITS;
export const MEASURES = Object.keys(MEASURE_DIGITS) as Measure[];

/**
 * Measures that the platform may not give for an item. A bucket with such an item has no record of the measure, but one of
 * `lcu` (`usage.unknown_unit`).
 */
export const STANDARD_UNITS = ["compute_standard_units", "storage_standard_units"] as const;

interface MeterTerms {
  /**
   * The platform's parameter `kind`. `sandboxes` and `evaluators` are our own words: their endpoints have no such parameter.
   */
  readonly kind: "traces" | "langsmith_deployments" | "sandboxes" | "evaluators";
  /** The platform's parameter `trace_tier`; `all` where there is no such filter. */
  readonly tier: "all" | "longlived" | "shortlived";
  readonly measures: readonly Measure[];
  readonly groupings: readonly GroupBy[];
  readonly project: "project" | "deployment" | "sandbox" | "run_rule";
  /** True if a request names one workspace in a header and no response names it. */
  readonly isByWorkspace: boolean;
  readonly isExported: boolean;
}

const OF_TRACES = {
  kind: "traces",
  measures: ["traces"],
  groupings: GROUPINGS,
  project: "project",
  isByWorkspace: false,
  isExported: true,
} as const;
const BY_WORKSPACE = {
  tier: "all",
  groupings: ["workspace", "project"],
  isByWorkspace: true,
  isExported: false,
} as const;

export const METER: Readonly<Record<Meter, MeterTerms>> = {
  traces: { ...OF_TRACES, tier: "all" },
  longlived: { ...OF_TRACES, tier: "longlived" },
  shortlived: { ...OF_TRACES, tier: "shortlived" },
  deployments: {
    ...OF_TRACES,
    kind: "langsmith_deployments",
    tier: "all",
    measures: ["nodes_executed", "agent_runs", "agent_uptime_seconds"],
    project: "deployment",
  },
  sandboxes: {
    ...BY_WORKSPACE,
    kind: "sandboxes",
    measures: ["lcu", "lsu", ...STANDARD_UNITS],
    project: "sandbox",
  },
  evaluators: {
    ...BY_WORKSPACE,
    kind: "evaluators",
    measures: ["spend_usd", "evaluated_traces"],
    project: "run_rule",
  },
};

export function groupingsFor(meter: Meter, wanted: readonly GroupBy[] = GROUPINGS): GroupBy[] {
  return wanted.filter((groupBy) => METER[meter].groupings.includes(groupBy));
}

export const METER_NOT_KNOWN = "meter_not_known";

export const METER_NAME: Readonly<Record<Meter, string>> = {
  traces: "traces",
  longlived: "long-lived traces",
  shortlived: "short-lived traces",
  deployments: "deployment usage",
  sandboxes: "sandbox usage",
  evaluators: "evaluator spend",
};

/** Undefined if this release does not know the scope's kind and tier. */
export function meterOf(kind: string, tier: string): Meter | undefined {
  return METERS.find((meter) => METER[meter].kind === kind && METER[meter].tier === tier);
}

export function meterOfMeasure(measure: Measure): Meter {
  return METERS.find((meter) => METER[meter].measures.includes(measure)) ?? "traces";
}

export function meterFlags(meter: Meter): string {
  const { kind, tier } = METER[meter];
  return tier === METER.traces.tier ? `--kind ${kind}` : `--tier ${tier}`;
}

export function numberName(meter: Meter, measure: Measure): string {
  return METER[meter].measures.length > 1 ? measure : METER_NAME[meter];
}
