import { GROUPINGS, type GroupBy } from "./grouping.ts";

/**
 * What is counted: a kind of usage, and for traces a filter by retention tier (docs/platform.md). Usage of different meters is
 * never added up: `longlived` and `shortlived` are parts of `traces`, and deployments and sandboxes are counted apart.
 */
export const METERS = ["traces", "longlived", "shortlived", "deployments", "sandboxes"] as const;
export type Meter = (typeof METERS)[number];

export const MEASURES = [
  "traces",
  "nodes_executed",
  "agent_runs",
  "agent_uptime_seconds",
  "lcu",
  "lsu",
] as const;
/**
 * A number that a record carries; seconds for `agent_uptime_seconds`, a raw sum over replicas; of `lcu` and `lsu`, compute and
 * storage units, which have six digits after the point, whole millionths (src/domain/usage/amount.ts).
 */
export type Measure = (typeof MEASURES)[number];

interface MeterTerms {
  /** The platform's word, as in its parameter `kind`. Sandboxes have an address of their own, and this word is ours. */
  readonly kind: "traces" | "langsmith_deployments" | "sandboxes";
  /** The platform's word, as in its parameter `trace_tier`; `all` where there is no such filter. */
  readonly tier: "all" | "longlived" | "shortlived";
  /** What each record counts. */
  readonly measures: readonly Measure[];
  /** What it is split by. */
  readonly groupings: readonly GroupBy[];
  /** Whether the platform exports it as CSV, which `reconcile` compares. */
  readonly isExported: boolean;
}

const OF_TRACES = { kind: "traces", measures: ["traces"], groupings: GROUPINGS, isExported: true } as const;

export const METER: Readonly<Record<Meter, MeterTerms>> = {
  traces: { ...OF_TRACES, tier: "all" },
  longlived: { ...OF_TRACES, tier: "longlived" },
  shortlived: { ...OF_TRACES, tier: "shortlived" },
  deployments: {
    ...OF_TRACES,
    kind: "langsmith_deployments",
    tier: "all",
    measures: ["nodes_executed", "agent_runs", "agent_uptime_seconds"],
  },
  sandboxes: {
    kind: "sandboxes",
    tier: "all",
    measures: ["lcu", "lsu"],
    groupings: ["workspace", "project"],
    isExported: false,
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
};

/** The meter of a scope's kind and tier; undefined for one that this release does not know. */
export function meterOf(kind: string, tier: string): Meter | undefined {
  return METERS.find((meter) => METER[meter].kind === kind && METER[meter].tier === tier);
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
