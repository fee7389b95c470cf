import { type DeploymentMeasure, deploymentMeasures } from "../engine/deployment-ledger.ts";
import type { TraceTier } from "../engine/ledger.ts";
import type { Stream } from "../engine/organisation.ts";
import type { World } from "../world.ts";
import type { UsageQuery } from "./query.ts";
import { keepsLonglived } from "./version.ts";

export type Measure = "traces" | DeploymentMeasure;

/** One stream's part of an answer: what it belongs to, and how to count it. */
export interface Part {
  readonly stream: Stream;
  /** Of the traces that are counted; null for all. */
  readonly tier: TraceTier | null;
  readonly measure: Measure;
  counts(edges: readonly number[]): Float64Array;
}

export function measuresOf({ kind }: UsageQuery): readonly Measure[] {
  return kind === "traces" ? ["traces"] : deploymentMeasures;
}

/** What an answer adds up. Each kind has streams, entities and a beginning of its own (docs/platform.md, Contracts). */
export function partsOf(world: World, query: UsageQuery, isAsked: (stream: Stream) => boolean): Part[] {
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
