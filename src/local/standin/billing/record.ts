import { deploymentMeasures } from "../engine/deployment-ledger.ts";
import type { Settings } from "../settings.ts";
import type { UsageQuery } from "./query.ts";
import { toWireStride } from "./stride.ts";
import type { Measured, Usage } from "./usage.ts";

/**
 * docs/platform.md, Records. The day-granular contract alone knows measures of both kinds, each 0 for the other one, and
 * `api_key_id` (Contracts).
 */
export function toWireUsage(
  { stride, rows, missing }: Usage,
  { groupBy }: UsageQuery,
  { contract, otherMeasures }: Settings,
): object {
  const plain = contract === "tiered" && groupBy === "api_key";
  const sent = contract === "tiered" || otherMeasures === "absent" ? [] : ["traces", ...deploymentMeasures];
  const none: Measured = Object.fromEntries(sent.filter((one) => one !== missing).map((one) => [one, 0]));
  return {
    stride: toWireStride(stride),
    usage: rows.map(({ bucket, dimensions, measured }) => ({
      time_bucket: toWireTime(bucket.start),
      dimensions: plain ? { api_key_short_key: dimensions.api_key_short_key } : dimensions,
      ...none,
      ...measured,
    })),
  };
}

/** ISO 8601; with Z, and without zero fractions (our guess). */
export function toWireTime(instant: number): string {
  return new Date(instant).toISOString().replace(".000Z", "Z");
}
