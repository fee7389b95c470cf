import type { Interval } from "../../domain/time/window.ts";
import type { GroupBy, UsageRecord } from "../../domain/usage/record.ts";
import type { RunRule } from "../../domain/usage/run-rule.ts";
import type { Asking } from "../http/http.ts";

/** Usage that is asked for by workspace (`METER`): answers name none, the header of the request does. */
export interface WorkspaceQuery extends Interval {
  readonly groupBy: GroupBy;
  readonly workspaceId: string;
}

export interface WorkspaceIo extends Asking {
  readonly onRecords: (records: UsageRecord[]) => void;
  /** Of evaluators alone: the rules that an answer names. */
  readonly onRules?: ((rules: RunRule[]) => void) | undefined;
  /**
   * Sends each request of an answer but the first, as whoever asks sends the first one: within the rate limit, and again where
   * that is worth it. Default: once, and at once.
   */
  readonly sendMore?: (<T>(send: () => Promise<T>) => Promise<T>) | undefined;
}
