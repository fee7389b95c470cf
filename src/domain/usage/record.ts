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

/** One number of a record of an answer, after its schema held: ids and names normalised, bucket still to be proved on the grid. */
export interface UsageRecord {
  /** Epoch milliseconds of the bucket's start; null where the platform gave none. */
  readonly bucketStart: number | null;
  /** Workspace id (lower-case) where the answer names one, else null. */
  readonly workspaceId: string | null;
  /** Id of the grouping's own dimension; `NO_ID` for null, absent or empty. The short key for `api_key`. */
  readonly dimensionId: string;
  /** Name or e-mail address beside the id; null where there is none. */
  readonly dimensionName: string | null;
  /** What `traces` counts; left out for traces. A record of several measures becomes one of these for each. */
  readonly measure?: Measure;
  /** A whole amount, at least 0 and a safe integer, in the unit of `MEASURE_DIGITS`. */
  readonly traces: number;
}

/** What an id stands for. */
export type Dimension = GroupBy | (typeof METER)[Meter]["project"];

/** What the ids of an answer stand for. */
export function dimensionOf(meter: Meter, groupBy: GroupBy): Dimension {
  return groupBy === "project" ? METER[meter].project : groupBy;
}
