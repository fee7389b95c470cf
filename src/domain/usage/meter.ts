import { GROUPINGS, type GroupBy } from "./grouping.ts";

/**
 * What is counted: a kind of usage, and for traces a filter by retention tier (docs/platform.md). Usage of different meters is
 * never added up: `longlived` and `shortlived` are parts of `traces`, and deployments, sandboxes and evaluators are counted apart.
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
 * The numbers that records carry, each with its digits after the point: stored as whole numbers (src/domain/usage/amount.ts).
 * `agent_uptime_seconds` is a raw sum over replicas. `lcu` and `lsu` are compute and storage units. `spend_usd` is computed by the
 * platform from model prices, and no invoice.
 */
export const MEASURE_DIGITS = {
  traces: 0,
  nodes_executed: 0,
  agent_runs: 0,
  agent_uptime_seconds: 0,
  lcu: 6,
  lsu: 6,
  spend_usd: 9,
  evaluated_traces: 0,
} as const;
export type Measure = keyof typeof MEASURE_DIGITS;
export const MEASURES = Object.keys(MEASURE_DIGITS) as Measure[];

interface MeterTerms {
  /** The platform's word, as in its parameter `kind`. Sandboxes and evaluators have addresses of their own, and the words are ours. */
  readonly kind: "traces" | "langsmith_deployments" | "sandboxes" | "evaluators";
  /** The platform's word, as in its parameter `trace_tier`; `all` where there is no such filter. */
  readonly tier: "all" | "longlived" | "shortlived";
  /** What each record counts. */
  readonly measures: readonly Measure[];
  /** What it is split by. */
  readonly groupings: readonly GroupBy[];
  /** What a "project" of it is: each has ids of its own. */
  readonly project: "project" | "deployment" | "sandbox" | "run_rule";
  /** Whether a request is about one workspace: it stands in a header, and no answer names it. */
  readonly isByWorkspace: boolean;
  /** Whether the platform exports it as CSV, which `reconcile` compares. */
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
  sandboxes: { ...BY_WORKSPACE, kind: "sandboxes", measures: ["lcu", "lsu"], project: "sandbox" },
  evaluators: {
    ...BY_WORKSPACE,
    kind: "evaluators",
    measures: ["spend_usd", "evaluated_traces"],
    project: "run_rule",
  },
};

/** The dimensions of a meter among those that are asked for. */
export function groupingsFor(meter: Meter, wanted: readonly GroupBy[] = GROUPINGS): GroupBy[] {
  return wanted.filter((groupBy) => METER[meter].groupings.includes(groupBy));
}

/** For people. */
export const METER_NAME: Readonly<Record<Meter, string>> = {
  traces: "traces",
  longlived: "long-lived traces",
  shortlived: "short-lived traces",
  deployments: "deployment usage",
  sandboxes: "sandbox usage",
  evaluators: "evaluator spend",
};

/** The meter of a scope's kind and tier; undefined for one that this release does not know. */
export function meterOf(kind: string, tier: string): Meter | undefined {
  return METERS.find((meter) => METER[meter].kind === kind && METER[meter].tier === tier);
}

/** The meter whose records carry it; of traces of all tiers and of one tier the same number. */
export function meterOfMeasure(measure: Measure): Meter {
  return METERS.find((meter) => METER[meter].measures.includes(measure)) ?? "traces";
}

/** The flags by which commands ask for it. */
export function meterFlags(meter: Meter): string {
  const { kind, tier } = METER[meter];
  return tier === METER.traces.tier ? `--kind ${kind}` : `--tier ${tier}`;
}

/** What a number counts, for people: the measure where a record has several. */
export function numberName(meter: Meter, measure: Measure): string {
  return METER[meter].measures.length > 1 ? measure : METER_NAME[meter];
}
