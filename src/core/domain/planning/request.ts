import type { Window } from "../time/window.ts";
import { METER, type Meter } from "../usage/meter.ts";
import type { GroupBy } from "../usage/record.ts";

/** Very many ids in one URL fail: 50 UUIDs take about 2.6 KB of it (docs/platform.md, Requests). */
export const WORKSPACES_PER_REQUEST = 50;

export interface Member {
  readonly workspaceId: string;
  readonly scopeId: number;
}

export interface UsageRequest<M extends Pick<Member, "workspaceId"> = Member> {
  readonly meter: Meter;
  readonly groupBy: GroupBy;
  readonly window: Window;
  /** At least one member; exactly one if responses name no workspace. */
  readonly members: readonly M[];
}

export type UnstoredRequest = UsageRequest<Pick<Member, "workspaceId">>;

/** Groups members that may share a request. Only responses by workspace name the workspace and can cover several. */
export function batchesOf<M>(
  { meter, groupBy }: Pick<UsageRequest, "meter" | "groupBy">,
  members: readonly M[],
): M[][] {
  const most = groupBy === "workspace" && !METER[meter].isByWorkspace ? WORKSPACES_PER_REQUEST : 1;
  return Array.from({ length: Math.ceil(members.length / most) }, (_, i) =>
    members.slice(i * most, (i + 1) * most),
  );
}

export function requestsFor<M extends Pick<Member, "workspaceId">>(all: UsageRequest<M>): UsageRequest<M>[] {
  return batchesOf(all, all.members).map((members) => ({ ...all, members }));
}

/** Empty for one member. */
export function halvesByMember<M extends Pick<Member, "workspaceId">>(
  all: UsageRequest<M>,
): UsageRequest<M>[] {
  const { members } = all;
  const half = Math.ceil(members.length / 2);
  if (half === members.length) return [];
  return [members.slice(0, half), members.slice(half)].map((some) => ({ ...all, members: some }));
}

export function workspaceIdsOf({ members }: UnstoredRequest): string[] {
  return members.map((member) => member.workspaceId);
}

export function scopeIdsOf({ members }: UsageRequest): number[] {
  return members.map((member) => member.scopeId);
}
