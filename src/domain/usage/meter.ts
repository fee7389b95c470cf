/**
 * What is counted: a kind of usage, and for traces a filter by retention tier (docs/platform.md). Usage of different meters is
 * never added up: `longlived` and `shortlived` are parts of `traces`, and deployments are counted apart.
 */
export const METERS = ["traces", "longlived", "shortlived", "deployments"] as const;
export type Meter = (typeof METERS)[number];

export const MEASURES = ["traces", "nodes_executed", "agent_runs", "agent_uptime_seconds"] as const;
/** A number that a record carries; seconds for `agent_uptime_seconds`, a raw sum over replicas. */
export type Measure = (typeof MEASURES)[number];

interface MeterTerms {
  /** The platform's word, as in its parameter `kind`. */
  readonly kind: "traces" | "langsmith_deployments";
  /** The platform's word, as in its parameter `trace_tier`; `all` where there is no such filter. */
  readonly tier: "all" | "longlived" | "shortlived";
  /** What each record counts. */
  readonly measures: readonly Measure[];
}

export const METER: Readonly<Record<Meter, MeterTerms>> = {
  traces: { kind: "traces", tier: "all", measures: ["traces"] },
  longlived: { kind: "traces", tier: "longlived", measures: ["traces"] },
  shortlived: { kind: "traces", tier: "shortlived", measures: ["traces"] },
  deployments: {
    kind: "langsmith_deployments",
    tier: "all",
    measures: ["nodes_executed", "agent_runs", "agent_uptime_seconds"],
  },
};

/** For people. */
export const METER_NAME: Readonly<Record<Meter, string>> = {
  traces: "traces",
  longlived: "long-lived traces",
  shortlived: "short-lived traces",
  deployments: "deployment usage",
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
  return meter === "deployments" ? measure : METER_NAME[meter];
}
