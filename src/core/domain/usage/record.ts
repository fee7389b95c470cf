import type { GroupBy } from "./grouping.ts";
import { METER, type Measure, type Meter } from "./meter.ts";

export { GROUPINGS, type GroupBy } from "./grouping.ts";

/** Null, absent and empty ids are one value: this one in the store, `(none)` in every view. */
export const NO_ID = "";

/** The id as people see it, different for every id; `usage.shown_id` does the same in the views. */
export function shownId(id: string): string {
  if (id === NO_ID) return "(none)";
  return /^\\*\(none\)$/.test(id) ? `\\${id}` : id;
}

/** One measure of a record that passed its schema. The bucket is not yet checked against the grid. */
export interface UsageRecord {
  readonly bucketStart: number | null;
  readonly workspaceId: string | null;
  /** `NO_ID` for null, absent or empty. The short key for `api_key`. */
  readonly dimensionId: string;
  /** Name or e-mail address that came with the id; null if none came. */
  readonly dimensionName: string | null;
  /** Undefined for traces. A record with several measures becomes one `UsageRecord` for each. */
  readonly measure?: Measure;
  /** A safe integer of at least 0, in the unit of `MEASURE_DIGITS`. */
  readonly traces: number;
}

export type Dimension = GroupBy | (typeof METER)[Meter]["project"];

export function dimensionOf(meter: Meter, groupBy: GroupBy): Dimension {
  return groupBy === "project" ? METER[meter].project : groupBy;
}
