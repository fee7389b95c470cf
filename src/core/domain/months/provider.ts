import type { Interval } from "../time/window.ts";
import type { Measure, Meter } from "../usage/meter.ts";

export interface ProviderReading extends Interval {
  /** Null if the provider names no customer. */
  readonly customerId: string | null;
  readonly metricId: string;
  readonly metricName: string | null;
  /** Total of all workspaces. Null means unknown, not zero. */
  readonly value: number | null;
  readonly workspaces: ReadonlyMap<string, number | null>;
}

export const PROVIDER_OUTCOMES = {
  equal: "equals the stored days",
  differs: "differs from the stored days",
  not_final: "not every day of the month is loaded and final",
  not_loaded: "this usage is not loaded",
  unknown_workspace: "the workspace is not loaded here",
  unknown_metric: "nothing that is loaded counts this metric",
  several_metrics: "several metrics have this meaning",
  unknown_value: "the provider does not know the value",
  other_period: "its totals are not of calendar months",
  not_whole: "the value is not a whole number",
  no_metric: "the provider names no such metric",
  sum_of_workspaces: "the sum of its workspaces, which are compared",
  not_the_sum: "its workspaces do not add up to it",
} as const;
export type ProviderOutcome = keyof typeof PROVIDER_OUTCOMES;

export interface ProviderTotal {
  /** Empty: the response has no metric of this meter. */
  readonly metricId: string;
  readonly metricName: string | null;
  /** Null: nothing is compared with this metric. */
  readonly meter: ProviderMeter | null;
  /** Null: the total of all workspaces. */
  readonly workspaceId: string | null;
  readonly value: number | null;
  /** Why the total cannot be compared. Null: it can. */
  readonly unusable: ProviderOutcome | null;
}

/**
 * Returns one total per metric, and one per workspace of the metric. Adds up readings of parts of the month, and of several
 * customers of one contract. `unusable`: why a total cannot be compared. A known workspace that the provider does not name has
 * 0, if the named ones add up to the metric's total. `expected`: what must have a metric.
 */
export function totalsOfMonth(
  readings: readonly ProviderReading[],
  {
    month,
    known,
    expected = TRACE_METERS,
  }: { month: Interval; known: readonly string[]; expected?: readonly ProviderMeter[] },
): ProviderTotal[] {
  const metrics = [...Map.groupBy(readings, ({ metricId }) => metricId)].map(([metricId, own]) => {
    const metricName = own.find((one) => one.metricName !== null)?.metricName ?? null;
    return { metricId, metricName, own, meter: meterOfMetric(metricName) ?? null };
  });
  const absent = expected.filter((meter) => !metrics.some((one) => one.meter === meter));
  return [
    ...metrics.flatMap(({ metricId, metricName, own, meter }) => {
      const about = { metricId, metricName, meter };
      const isOnly = metrics.filter((one) => one.meter === meter).length === 1;
      const reason = reasonOf(own, { meter, isOnly, month });
      const value = sumOf(own.map((one) => one.value));
      const named = amountsOf(own);
      const isSum = value !== null && sumOf([...named.values()]) === value;
      const ids = [...new Set([...named.keys(), ...(meter === null ? [] : known)])].sort();
      return [
        {
          ...about,
          workspaceId: null,
          value,
          unusable: reason ?? (isSum ? "sum_of_workspaces" : notTheSum(value)),
        },
        ...ids.map((workspaceId): ProviderTotal => {
          const unnamed = isSum ? 0 : null;
          const amount = named.has(workspaceId) ? (named.get(workspaceId) ?? null) : unnamed;
          return { ...about, workspaceId, value: amount, unusable: reason ?? unusable(amount) };
        }),
      ];
    }),
    ...absent.map(
      (meter): ProviderTotal => ({
        metricId: "",
        metricName: null,
        meter,
        workspaceId: null,
        value: null,
        unusable: "no_metric",
      }),
    ),
  ];
}

/** Why a metric cannot be compared. Null: it can. */
function reasonOf(
  own: readonly ProviderReading[],
  { meter, isOnly, month }: { meter: ProviderMeter | null; isOnly: boolean; month: Interval },
): ProviderOutcome | null {
  if (meter === null) return "unknown_metric";
  if (!isOnly) return "several_metrics";
  const customers = [...Map.groupBy(own, ({ customerId }) => customerId).values()];
  return customers.every((some) => isTiling(some, month)) ? null : "other_period";
}

function notTheSum(value: number | null): ProviderOutcome {
  return value === null ? "unknown_value" : "not_the_sum";
}

function unusable(value: number | null): ProviderOutcome | null {
  if (value === null) return "unknown_value";
  return Number.isSafeInteger(value) ? null : "not_whole";
}

/** Sums amounts by workspace, over the readings that name it. Null if one of these is unknown. */
function amountsOf(readings: readonly ProviderReading[]): ReadonlyMap<string, number | null> {
  const entries = readings.flatMap(({ workspaces }) => [...workspaces]);
  const byId = Map.groupBy(entries, ([id]) => id);
  return new Map([...byId].map(([id, some]) => [id, sumOf(some.map(([, amount]) => amount))]));
}

function sumOf(parts: readonly (number | null)[]): number | null {
  return parts.reduce<number | null>((sum, part) => (sum === null || part === null ? null : sum + part), 0);
}

function isTiling(readings: readonly Interval[], { start, end }: Interval): boolean {
  let at = start;
  for (const one of readings.toSorted((a, b) => a.start - b.start)) {
    if (one.start !== at) return false;
    at = one.end;
  }
  return at === end;
}

const TRACE_METERS = ["traces", "longlived"] as const;
export const PROVIDER_METERS = [...TRACE_METERS, "agent_runs", "nodes_executed"] as const;
export type ProviderMeter = (typeof PROVIDER_METERS)[number];

export const PROVIDER_USAGE: Readonly<
  Record<ProviderMeter, { readonly meter: Meter; readonly measure: Measure }>
> = {
  traces: { meter: "traces", measure: "traces" },
  longlived: { meter: "longlived", measure: "traces" },
  agent_runs: { meter: "deployments", measure: "agent_runs" },
  nodes_executed: { meter: "deployments", measure: "nodes_executed" },
};

export function providerMeterOf(meter: Meter, measure: Measure): ProviderMeter {
  const isSame = (one: ProviderMeter) =>
    PROVIDER_USAGE[one].meter === meter && PROVIDER_USAGE[one].measure === measure;
  return PROVIDER_METERS.find(isSame) ?? "traces";
}

export const METER_WORDS: Readonly<Record<ProviderMeter, string>> = {
  traces: "traces",
  longlived: "extended traces",
  agent_runs: "deployment runs",
  nodes_executed: "deployment nodes executed",
};

/** Words in a metric's name that do not show what it counts. */
const FILLERS = new Set(["langsmith", "base", "charge", "charges", "data", "retention", "usage", "count"]);
const DEPLOYMENT_METRICS: Readonly<Record<string, ProviderMeter>> = {
  runs: "agent_runs",
  "nodes executed": "nodes_executed",
};
const EXTENDED = new Set(["extended", "longlived", "upgrade", "upgrades"]);

/**
 * Returns the meter of a billable metric by its name: `LangSmith Traces (Base Charge)`, `LangSmith Traces (Extended Data
 * Retention Upgrades)`, `LangSmith Deployment Runs`. Undefined for other names, because a wrong guess would differ forever.
 */
export function meterOfMetric(name: string | null): ProviderMeter | undefined {
  const words =
    (name ?? "")
      .toLowerCase()
      .replaceAll(/long[\s_-]lived/g, "longlived")
      .match(/[a-z0-9]+/g) ?? [];
  const said = words.filter((word) => !FILLERS.has(word));
  const ofDeployments = said.filter((word) => !/^deployments?$/.test(word)).join(" ");
  if (said.length > ofDeployments.split(" ").length) return DEPLOYMENT_METRICS[ofDeployments];
  const rest = said.filter((word) => word !== "traces" && word !== "trace");
  if (rest.length === said.length) return undefined;
  if (rest.length === 0) return "traces";
  return rest.every((word) => EXTENDED.has(word)) ? "longlived" : undefined;
}

export interface ProviderMonth {
  /** ISO instant of the newest reading. Null: never read. */
  readonly readAt: string | null;
  /** Why the server does not show totals. Null: it shows them, or was not requested. */
  readonly refusal: string | null;
  readonly outcomes: readonly {
    readonly meter: ProviderMeter;
    readonly outcome: ProviderOutcome;
    readonly workspaces: number;
    /** The provider's total of workspaces that are not loaded here. Null if unknown. */
    readonly held?: number | null;
  }[];
  readonly changedSince: number;
}

const COMPARED: ReadonlyMap<ProviderOutcome, string> = new Map([
  ["equal", "equal"],
  ["differs", "DIFFERENT"],
]);

export function describeProviderMonth(of: ProviderMonth): string {
  if (of.readAt === null) {
    return of.refusal === null
      ? "not compared with the billing provider: its totals were not read. `usage-etl totals --provider` reads them."
      : "not compared with the billing provider: the server does not show its totals to this key.";
  }
  const said = of.outcomes.filter(({ outcome }) => outcome !== "not_loaded");
  const parts = said.map(({ meter, outcome, workspaces, held }) => {
    const whose =
      workspaces === 0 ? "" : ` of ${workspaces} ${workspaces === 1 ? "workspace" : "workspaces"}`;
    const amount =
      typeof held !== "number"
        ? ""
        : `, and the provider counts ${held.toLocaleString("en-US")} traces there`;
    const what = COMPARED.get(outcome) ?? `not compared (${PROVIDER_OUTCOMES[outcome]}${amount})`;
    return `${METER_WORDS[meter]}${whose} ${what}`;
  });
  const since =
    of.changedSince === 0
      ? ""
      : ` Final counts of ${of.changedSince} ${of.changedSince === 1 ? "workspace" : "workspaces"} changed since, so compare again: \`usage-etl totals --provider\``;
  return `compared with the billing provider on ${of.readAt.slice(0, 10)}: ${parts.length === 0 ? "it holds nothing of this month" : parts.join("; ")}.${since}`;
}
