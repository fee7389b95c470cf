import type { Stream, Workspace } from "../engine/organisation.ts";
import type { StrideName } from "../faults.ts";
import type { Format, World } from "../world.ts";
import type { UsageQuery } from "./query.ts";
import { cut, dayGranular, LENGTH, type Range, strideOf } from "./stride.ts";

type Dimensions = Readonly<Record<string, string | null>>;

interface UsageRow {
  readonly bucket: Range;
  readonly dimensions: Dimensions;
  readonly count: number;
}

export interface Usage {
  readonly stride: StrideName;
  /** By time, then in the organisation's order (our guess). */
  readonly rows: readonly UsageRow[];
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

  const groups = new Map<string | null, { dimensions: Dimensions; counts: Float64Array }>();
  const countsOf = (dimensions: Dimensions): Float64Array => {
    const [id = null] = Object.values(dimensions);
    const group = groups.get(id) ?? { dimensions, counts: new Float64Array(buckets.length) };
    groups.set(id, group);
    return group.counts;
  };
  const { organisation, access } = world;
  const workspaces = organisation.workspaces.filter(
    (one) => query.workspaceIds.includes(one.id) && access.canRead(one),
  );
  if (query.groupBy === "workspace" && !omitZero) {
    for (const workspace of workspaces) countsOf(ofWorkspace(workspace));
  }
  const streams = organisation.streams.filter(
    ({ project, tier }) =>
      workspaces.includes(project.workspace) &&
      !project.dropped &&
      (query.tier === null || query.tier === tier) &&
      (query.kind === "traces" || project.agent),
  );
  for (const stream of streams) {
    const counts = world.ledger.counts(stream, edges);
    for (const { cell, delta } of world.discrepanciesIn({ stride, format, groupBy: query.groupBy }, stream)) {
      const i = edges.findIndex((from, at) => cell.at >= from && cell.at < (edges[at + 1] ?? from));
      if (i >= 0) counts[i] = Math.max(0, (counts[i] ?? 0) + delta);
    }
    const sums = countsOf(dimensionsOf(stream, query.groupBy));
    counts.forEach((count, i) => {
      sums[i] = (sums[i] ?? 0) + count;
    });
  }
  const rows: UsageRow[] = [];
  buckets.forEach((bucket, i) => {
    // If zeroes are sent, none are sent before the data start or in the future (our guess).
    const known = bucket.end > world.ledger.dataStart && bucket.start < world.now();
    for (const { dimensions, counts } of groups.values()) {
      const count = counts[i] ?? 0;
      if (count > 0 || (!omitZero && known)) rows.push({ bucket, dimensions, count });
    }
  });
  return { stride, rows };
}

function coarser(stride: StrideName): StrideName {
  const names = Object.keys(LENGTH) as StrideName[];
  return names.find((name) => LENGTH[name] > LENGTH[stride]) ?? "month";
}

/** docs/platform.md, Records. `trace_tier` and `api_key_id`: Contracts. */
function dimensionsOf({ project, user, key, tier }: Stream, groupBy: UsageQuery["groupBy"]): Dimensions {
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
