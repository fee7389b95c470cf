import { bucketOf } from "../engine/edits.ts";
import type { Stream, Workspace } from "../engine/organisation.ts";
import type { StrideName } from "../faults.ts";
import type { Format, World } from "../world.ts";
import { type Measure, measuresOf, type Part, partsOf } from "./parts.ts";
import type { UsageQuery } from "./query.ts";
import { cut, dayGranular, LENGTH, type Range, strideOf } from "./stride.ts";

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
export function usageOf(
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
  const start = query.kind === "traces" ? world.ledger.dataStart : world.deploymentLedger.start;
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
