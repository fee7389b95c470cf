import type { Settings } from "../world.ts";
import type { Kind, UsageQuery } from "./query.ts";
import { toWireStride } from "./stride.ts";
import type { Usage } from "./usage.ts";

export interface Measures {
  readonly traces: number;
  readonly nodes_executed?: number;
  readonly agent_runs?: number;
  readonly agent_uptime_seconds?: number;
}

/** Specification; the live contract adds measures, each 0 for the other kind (documented). Their relation is made up. */
export function measures(contract: Settings["contract"], kind: Kind): (count: number) => Measures {
  if (contract === "tiered") return (traces) => ({ traces });
  if (kind === "traces") {
    return (traces) => ({ traces, nodes_executed: 0, agent_runs: 0, agent_uptime_seconds: 0 });
  }
  return (runs) => ({
    traces: 0,
    nodes_executed: runs * 7,
    agent_runs: runs,
    agent_uptime_seconds: runs * 42,
  });
}

/** Specification, "Granular usage response". `api_key_id` appears in the live contract only. */
export function toWireUsage(
  { stride, rows }: Usage,
  { groupBy, kind }: UsageQuery,
  contract: Settings["contract"],
): object {
  const measure = measures(contract, kind);
  const plain = contract === "tiered" && groupBy === "api_key";
  return {
    stride: toWireStride(stride),
    usage: rows.map(({ bucket, dimensions, count }) => ({
      time_bucket: toWireTime(bucket.start),
      dimensions: plain ? { api_key_short_key: dimensions.api_key_short_key } : dimensions,
      ...measure(count),
    })),
  };
}

/** ISO 8601 (specification); with Z and without fractions where there are none (our guess). */
export function toWireTime(instant: number): string {
  return new Date(instant).toISOString().replace(".000Z", "Z");
}
