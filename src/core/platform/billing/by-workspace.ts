import type { Interval } from "../../domain/time/window.ts";
import type { GroupBy, UsageRecord } from "../../domain/usage/record.ts";
import type { RunRule } from "../../domain/usage/run-rule.ts";
import type { RequestOptions } from "../http/http.ts";

export interface WorkspaceQuery extends Interval {
  readonly groupBy: GroupBy;
  readonly workspaceId: string;
}

export interface WorkspaceIo extends RequestOptions {
  readonly onRecords: (records: UsageRecord[]) => void;
  readonly onRules?: ((rules: RunRule[]) => void) | undefined;
  readonly onRefused?: ((refused: string) => void) | undefined;
  readonly sendMore?: (<T>(send: () => Promise<T>) => Promise<T>) | undefined;
}
