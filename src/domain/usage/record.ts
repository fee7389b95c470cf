import type { Measure, Meter } from "./meter.ts";

export const GROUPINGS = ["workspace", "project", "user", "api_key"] as const;
export type GroupBy = (typeof GROUPINGS)[number];

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
  /** What `traces` counts; left out for traces. A record of deployment usage becomes one of these for each measure. */
  readonly measure?: Measure;
  /** A whole amount, at least 0 and a safe integer. */
  readonly traces: number;
}

/** What the ids of an answer stand for. A "project" of deployment usage is a deployment, with ids of its own. */
export function dimensionOf(meter: Meter, groupBy: GroupBy): GroupBy | "deployment" {
  return meter === "deployments" && groupBy === "project" ? "deployment" : groupBy;
}
