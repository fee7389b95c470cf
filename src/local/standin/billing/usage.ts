import type { TraceTier } from "../engine/ledger.ts";
import { bucketOf, type DeploymentMeasure, deploymentMeasures } from "../engine/ledger.ts";
import type { Stream, Workspace } from "../engine/organisation.ts";
import type { Fault } from "../faults.ts";
import { keepsLonglived } from "../settings.ts";
import type { Format, World } from "../world.ts";
import type { UsageQuery } from "./query.ts";
import { cut, dayGranular, LENGTH, type Range, type StrideName, strideOf } from "./stride.ts";

type Dimensions = Readonly<Record<string, string | null>>;

export type Measured = Partial<Record<Measure, number>>;

interface UsageRow {
  readonly bucket: Range;
  readonly dimensions: Dimensions;
  readonly measured: Measured;
}

interface Group {
  readonly dimensions: Dimensions;
  /** By bucket. */
  readonly sums: ReadonlyMap<Measure, Float64Array>;
}

export interface Usage {
  readonly stride: StrideName;
  /** By time, then in the organisation's order (our guess). */
  readonly rows: readonly UsageRow[];
  /** Left out by a fault. */
  readonly missing?: Measure;
}

/**
 * Answers one query from the ledger (docs/platform.md, Records). Unknown and unreadable workspaces are left out without
 * an error. Records of several workspaces are merged by id, since they name no workspace. `wrong` answers at another
 * stride than the right one: a named one, or the next coarser.
 */
function usageOf(
  world: World,
  query: UsageQuery,
  { wrong, format }: { wrong: StrideName | "coarser" | null; format: Format },
): Usage {
  const { contract, align, omitZero } = world.settings;
  const asked = { start: query.start, end: query.end };
  const answered =
    contract === "day-granular" ? dayGranular(asked) : { range: asked, stride: strideOf(asked) };
  const stride = wrong === "coarser" ? coarser(answered.stride) : (wrong ?? answered.stride);
  const { buckets, edges } = cut(answered.range, stride, align);

  const measures = measuresOf(query);
  const groups = new Map<string | null, Group>();
  const groupOf = (dimensions: Dimensions): Group => {
    const [id = null] = Object.values(dimensions);
    const known = groups.get(id);
    if (known !== undefined) return known;
    const sums = new Map(measures.map((one) => [one, new Float64Array(buckets.length)]));
    groups.set(id, { dimensions, sums });
    return { dimensions, sums };
  };
  const { organisation, access } = world;
  const workspaces = organisation.workspaces.filter(
    (one) => query.workspaceIds.includes(one.id) && access.canRead(one),
  );
  if (query.groupBy === "workspace" && !omitZero) {
    for (const workspace of workspaces) groupOf(ofWorkspace(workspace));
  }
  const isAsked = ({ project }: Stream) => workspaces.includes(project.workspace) && !project.dropped;
  for (const part of partsOf(world, query, isAsked)) {
    const { stream, tier, measure } = part;
    const counts = part.counts(edges);
    const about = { stride, format, groupBy: query.groupBy, tier: query.tier, measure };
    // Where tiers are rows, the short-lived one takes what is about all tiers.
    const isMeant = tier !== "longlived" || query.tier !== null;
    for (const { cell, delta } of isMeant ? world.discrepanciesIn(about, stream) : []) {
      const i = bucketOf(edges, cell.at);
      if (i >= 0) counts[i] = Math.max(0, (counts[i] ?? 0) + delta);
    }
    const sums = groupOf(dimensionsOf(part, query.groupBy)).sums.get(measure);
    if (sums === undefined) continue;
    counts.forEach((count, i) => {
      sums[i] = (sums[i] ?? 0) + count;
    });
  }
  const start = query.kind === "traces" ? world.ledger.start : world.deploymentLedger.start;
  const rows: UsageRow[] = [];
  buckets.forEach((bucket, i) => {
    // If zeroes are sent, none are sent before the data start or in the future (our guess).
    const known = bucket.end > start && bucket.start < world.now();
    for (const { dimensions, sums } of groups.values()) {
      const measured: Measured = {};
      let isUsed = false;
      for (const [measure, counts] of sums) {
        const amount = counts[i] ?? 0;
        measured[measure] = amount;
        isUsed ||= amount > 0;
      }
      if (isUsed || (!omitZero && known)) rows.push({ bucket, dimensions, measured });
    }
  });
  return { stride, rows };
}

function coarser(stride: StrideName): StrideName {
  const names = Object.keys(LENGTH) as StrideName[];
  return names.find((name) => LENGTH[name] > LENGTH[stride]) ?? "month";
}

/** docs/platform.md, Records. `trace_tier` and `api_key_id`: Contracts. */
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

export type Measure = "traces" | DeploymentMeasure;

/** One stream's part of an answer: what it belongs to, and how to count it. */
interface Part {
  readonly stream: Stream;
  /** Of the traces that are counted; null for all. */
  readonly tier: TraceTier | null;
  readonly measure: Measure;
  counts(edges: readonly number[]): Float64Array;
}

function measuresOf({ kind }: UsageQuery): readonly Measure[] {
  return kind === "traces" ? ["traces"] : deploymentMeasures;
}

/** What an answer adds up. Each kind has streams, entities and a beginning of its own (docs/platform.md, Contracts). */
function partsOf(world: World, query: UsageQuery, isAsked: (stream: Stream) => boolean): Part[] {
  const { organisation, ledger, deploymentLedger, settings } = world;
  if (query.kind === "langsmith_deployments") {
    // A server on which it was not switched on has nothing to count (our guess).
    if (settings.deploymentUsage !== "on") return [];
    return organisation.deploymentStreams.filter(isAsked).flatMap((stream) =>
      deploymentMeasures.map((measure) => ({
        ...{ stream, measure, tier: null },
        counts: (edges) => deploymentLedger.counts(stream, edges, measure),
      })),
    );
  }
  const tiers = query.groupBy === "trace_tier" && query.tier === null ? TIERS : [query.tier];
  return organisation.streams.filter(isAsked).flatMap((stream) =>
    tiers.map((tier) => ({
      ...{ stream, tier, measure: "traces" as const },
      counts: (edges) => tracesOf(stream, edges, tier),
    })),
  );

  /** A server that keeps no long-lived usage always answers 0 (documented); that all is short-lived there is our guess. */
  function tracesOf(stream: Stream, edges: readonly number[], tier: TraceTier | null): Float64Array {
    if (tier === null || keepsLonglived(settings)) return ledger.counts(stream, edges, tier);
    return tier === "longlived" ? new Float64Array(edges.length - 1) : ledger.counts(stream, edges);
  }
}

const TIERS = ["longlived", "shortlived"] as const;

/** The answer to one query, wrong where a fault says so. */
export function answered(world: World, query: UsageQuery, format: Format, fault: Fault | null): Usage {
  const wrong = fault?.kind === "stride" ? (fault.stride ?? "coarser") : null;
  if (fault?.kind === "tier-excess") {
    const all = usageOf(world, { ...query, tier: null }, { wrong, format });
    const rows = all.rows.map((row) => ({ ...row, measured: { traces: (row.measured.traces ?? 0) + 1 } }));
    return { ...all, rows };
  }
  const usage = usageOf(world, query, { wrong, format });
  if (fault?.kind !== "measure") return usage;
  const { measure } = fault;
  if (fault.wrong === "missing") {
    const rows = usage.rows.map(({ measured: { [measure]: _, ...measured }, ...row }) => ({
      ...row,
      measured,
    }));
    return { ...usage, rows, missing: measure };
  }
  return {
    ...usage,
    rows: usage.rows.map((row) => {
      const right = row.measured[measure] ?? 0;
      const impossible = fault.wrong === "negative" ? -1 - right : right + 0.5;
      return { ...row, measured: { ...row.measured, [measure]: impossible } };
    }),
  };
}
