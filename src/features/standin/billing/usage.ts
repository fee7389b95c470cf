import { bucketOf, type DeploymentMeasure, deploymentMeasures, type TraceTier } from "../engine/ledger.ts";
import type { Stream, Workspace } from "../engine/organisation.ts";
import { keepsLonglived } from "../engine/settings.ts";
import { cut, dayGranular, LENGTH, type Range, type StrideName, strideOf } from "../engine/stride.ts";
import type { Format, World } from "../engine/world.ts";
import type { UsageQuery } from "./query.ts";

export type Measure = "traces" | DeploymentMeasure;

type Dimensions = Readonly<Record<string, string | null>>;

export type Measured = Partial<Record<Measure, number>>;

interface UsageRow {
  readonly bucket: Range;
  readonly dimensions: Dimensions;
  readonly measured: Measured;
}

interface Group {
  readonly dimensions: Dimensions;
  readonly sums: ReadonlyMap<Measure, Float64Array>;
}

export interface Usage {
  readonly stride: StrideName;
  /** Sorted by time, then in the organization's order (our guess). */
  readonly rows: readonly UsageRow[];
}

/**
 * Unknown and unreadable workspaces are left out without an error. Records without a workspace are merged by id
 * (docs/platform.md, Records). `isCoarser`: a fault responds in the next coarser stride.
 */
export function usageOf(
  world: World,
  query: UsageQuery,
  { isCoarser, format }: { isCoarser: boolean; format: Format },
): Usage {
  const { contract, align } = world.settings;
  const requested = { start: query.start, end: query.end };
  const right =
    contract === "day-granular" ? dayGranular(requested) : { range: requested, stride: strideOf(requested) };
  const stride = isCoarser ? coarser(right.stride) : right.stride;
  const { buckets, edges } = cut(right.range, stride, align);
  const measures = query.kind === "traces" ? (["traces"] as const) : deploymentMeasures;
  const groups = new Map<string | null, Group>();
  const groupOf = (dimensions: Dimensions): Group => {
    const [id = null] = Object.values(dimensions);
    const sums = new Map(measures.map((one) => [one, new Float64Array(buckets.length)]));
    const group = groups.get(id) ?? { dimensions, sums };
    groups.set(id, group);
    return group;
  };
  const workspaces = world.organisation.workspaces.filter(
    (one) => query.workspaceIds?.includes(one.id) !== false && world.access.canRead(one),
  );
  if (query.groupBy === "workspace" && !world.settings.omitZero) workspaces.map(ofWorkspace).forEach(groupOf);
  const isRequested = ({ project }: Stream) => workspaces.includes(project.workspace) && !project.dropped;
  for (const part of partsOf(world, query, isRequested)) {
    const counts = part.counts(edges);
    contradict(world, query, { part, counts, edges, stride, format });
    const sums = groupOf(dimensionsOf(part, query.groupBy)).sums.get(part.measure);
    counts.forEach((count, i) => {
      if (sums !== undefined) sums[i] = (sums[i] ?? 0) + count;
    });
  }
  return { stride, rows: rowsOf(world, query, { buckets, groups: [...groups.values()] }) };
}

function contradict(
  world: World,
  { groupBy, tier }: UsageQuery,
  of: { part: Part; counts: Float64Array; edges: readonly number[]; stride: StrideName; format: Format },
): void {
  const { part, counts, edges, stride, format } = of;
  // If tiers are rows, a discrepancy about all tiers changes the short-lived row.
  if (part.tier === "longlived" && tier === null) return;
  const about = { stride, format, groupBy, tier, measure: part.measure };
  for (const { cell, delta } of world.discrepanciesIn(about, part.stream)) {
    const i = bucketOf(edges, cell.at);
    if (i >= 0) counts[i] = Math.max(0, (counts[i] ?? 0) + delta);
  }
}

function rowsOf(
  world: World,
  { kind }: UsageQuery,
  { buckets, groups }: { buckets: readonly Range[]; groups: readonly Group[] },
): UsageRow[] {
  const start = (kind === "traces" ? world.ledger : world.deploymentLedger).start;
  return buckets.flatMap((bucket, i) => {
    // Zeros are not sent before the data start or in the future (our guess).
    const isZeroSent = !world.settings.omitZero && bucket.end > start && bucket.start < world.now();
    const rows = groups.map(({ dimensions, sums }): UsageRow => {
      const measured = [...sums].map(([measure, counts]) => [measure, counts[i] ?? 0]);
      return { bucket, dimensions, measured: Object.fromEntries(measured) };
    });
    return rows.filter(({ measured }) => isZeroSent || Object.values(measured).some((amount) => amount > 0));
  });
}

function coarser(stride: StrideName): StrideName {
  const names = Object.keys(LENGTH) as StrideName[];
  return names.find((name) => LENGTH[name] > LENGTH[stride]) ?? "month";
}

/** docs/platform.md, Records; `trace_tier` and `api_key_id`: Contracts. */
function dimensionsOf({ stream, tier }: Part, groupBy: UsageQuery["groupBy"]): Dimensions {
  const { project, user, key } = stream;
  switch (groupBy) {
    case "workspace":
      return ofWorkspace(project.workspace);
    case "project":
      return { project_id: project.id, project_name: project.name };
    case "user":
      return { user_id: user?.id ?? null, user_email: user?.email ?? null };
    case "api_key":
      return { api_key_short_key: key?.shortKey ?? null, api_key_id: key?.id ?? null };
    case "trace_tier":
      return { trace_tier: tier };
  }
}

function ofWorkspace({ id, name }: Workspace): Dimensions {
  return { workspace_id: id, workspace_name: name };
}

interface Part {
  readonly stream: Stream;
  readonly tier: TraceTier | null;
  readonly measure: Measure;
  counts(edges: readonly number[]): Float64Array;
}

/** Each kind has its own streams, entities and data start (docs/platform.md, Contracts). */
function partsOf(world: World, query: UsageQuery, isRequested: (stream: Stream) => boolean): Part[] {
  const { organisation, ledger, deploymentLedger, settings } = world;
  if (query.kind === "langsmith_deployments") {
    // With `off`, nothing is counted (our guess).
    if (settings.deploymentUsage !== "on") return [];
    return organisation.deploymentStreams.filter(isRequested).flatMap((stream) =>
      deploymentMeasures.map((measure) => ({
        stream,
        measure,
        tier: null,
        counts: (edges) => deploymentLedger.counts(stream, edges, measure),
      })),
    );
  }
  const tiers = query.groupBy === "trace_tier" && query.tier === null ? TIERS : [query.tier];
  return organisation.streams.filter(isRequested).flatMap((stream) =>
    tiers.map((tier) => ({
      stream,
      tier,
      measure: "traces" as const,
      counts: (edges) => tracesOf(stream, edges, tier),
    })),
  );

  /** Without long-lived usage, a server responds with 0 (documented), and all traces are short-lived (our guess). */
  function tracesOf(stream: Stream, edges: readonly number[], tier: TraceTier | null): Float64Array {
    if (tier === null || keepsLonglived(settings)) return ledger.counts(stream, edges, tier);
    return tier === "longlived" ? new Float64Array(edges.length - 1) : ledger.counts(stream, edges);
  }
}

const TIERS = ["longlived", "shortlived"] as const;
