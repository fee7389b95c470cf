import type { Settings } from "../settings.ts";
import type { Kind, UsageQuery } from "./query.ts";
import { toWireStride } from "./stride.ts";
import type { Usage } from "./usage.ts";

export interface Measures {
  readonly traces: number;
  readonly nodes_executed?: number;
  readonly agent_runs?: number;
  readonly agent_uptime_seconds?: number;
}

/** Measures of a count (docs/platform.md, Contracts). How nodes and uptime relate to runs is our own. */
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

/** docs/platform.md, Records. `api_key_id` appears in the day-granular contract alone. */
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

/** ISO 8601; with Z, and without zero fractions (our guess). */
export function toWireTime(instant: number): string {
  return new Date(instant).toISOString().replace(".000Z", "Z");
}
