import { STRIDES, type Stride } from "../time/stride.ts";
import { METER_NAME, METERS, type Meter } from "../usage/meter.ts";
import type { GroupBy } from "../usage/record.ts";

export type LoadStatus = "final" | "provisional" | "not_available" | "failed" | "unverified" | "missing";

export interface RangeLine {
  readonly meter: Meter;
  readonly groupBy: GroupBy;
  readonly stride: Stride;
  readonly status: LoadStatus;
  /** Code of the failure of a `failed` or `unverified` part, else null. */
  readonly code: string | null;
  readonly buckets: number;
  readonly first: number;
  readonly end: number;
  /** Earliest next attempt, epoch ms. Null if none is planned. */
  readonly retryAt: number | null;
}

export function isLoaded({ status }: Pick<RangeLine, "status">): boolean {
  return status === "final" || status === "provisional";
}

/**
 * Describes a requested range. `open`: the part that is not loaded. `hasUnknown`: other usage was requested too, and it is not
 * known whether the server counts it.
 */
export function rangeSentence(
  lines: readonly RangeLine[],
  hasUnknown = false,
): {
  readonly sentence: string;
  readonly open: readonly RangeLine[];
} {
  const open = lines.filter((line) => !isLoaded(line));
  const loaded = describeLoaded(lines);
  const notAll = `Not all of it is loaded${loaded === "" ? "" : `, only ${loaded} (${UNIT})`}${open.length === 0 ? "." : ":"}`;
  if (hasUnknown) return { sentence: notAll, open };
  if (lines.length === 0) return { sentence: "No usage is expected in that range.", open };
  if (open.length === 0) return { sentence: `All of it is loaded: ${loaded} (${UNIT}).`, open };
  if (loaded !== "" && open.every(({ status }) => status === "not_available")) {
    const what = open.every(({ meter, stride }) => meter === "traces" && stride === "hour")
      ? "This server does not support hours, as Cloud does not:"
      : "Not available:";
    return { sentence: `All that the server responds is loaded: ${loaded} (${UNIT}). ${what}`, open };
  }
  return { sentence: notAll, open };
}

const UNIT = "figures by workspace and dimension";

function describeLoaded(all: readonly RangeLine[]): string {
  return METERS.flatMap((meter) => {
    const loaded = describeStrides(all.filter((line) => line.meter === meter));
    return loaded === "" ? [] : [meter === "traces" ? loaded : `${METER_NAME[meter]} ${loaded}`];
  }).join("; ");
}

function describeStrides(lines: readonly RangeLine[]): string {
  return STRIDES.flatMap((stride) => {
    const count = (status: RangeLine["status"]) =>
      lines.reduce((sum, one) => sum + (one.stride === stride && one.status === status ? one.buckets : 0), 0);
    const parts = (["final", "provisional"] as const)
      .filter((status) => count(status) > 0)
      .map((status) => `${count(status).toLocaleString("en-US")} ${status}`);
    return parts.length === 0 ? [] : [`by ${stride} ${parts.join(" and ")}`];
  })
    .reverse()
    .join(", ");
}
