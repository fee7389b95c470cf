import { dayOf, type Shape, workspaceId } from "./shapes.ts";

/** Between peers.ts and the processes that it starts. */

export interface PeerTask {
  readonly shape: Shape;
  readonly databaseUrl: string;
  readonly platformUrl: string;
  /** Where packages were installed. */
  readonly folder?: string;
}
export interface PeerAnswer {
  readonly ms: number;
  readonly peakMb: number;
}

/** Everything in one answer. */
export function usageUrl({ shape, platformUrl }: PeerTask): URL {
  const url = new URL("/api/v1/orgs/current/billing/granular-usage", platformUrl);
  url.searchParams.set("start_time", new Date(dayOf(0)).toISOString());
  url.searchParams.set("end_time", new Date(dayOf(shape.days)).toISOString());
  url.searchParams.set("workspace_ids", workspaceId(0));
  url.searchParams.set("group_by", "user");
  return url;
}
