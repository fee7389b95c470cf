import { type UsageRequest, workspaceIdsOf } from "../../src/core/domain/planning/request.ts";
import { normalize } from "../../src/core/domain/time/intervals.ts";
import { STRIDE_MS, TIER_BUCKETS } from "../../src/core/domain/time/stride.ts";

export function fewestRequests(requests: readonly UsageRequest[]): number {
  const together = Map.groupBy(
    requests,
    (request) =>
      `${request.meter} ${request.groupBy} ${request.window.stride} ${workspaceIdsOf(request).join()}`,
  );
  return [...together.values()].reduce((sum, group) => {
    const { stride } = (group as [UsageRequest])[0].window;
    const longest = TIER_BUCKETS[stride].max * STRIDE_MS[stride];
    const runs = normalize(group.map((request) => request.window));
    return sum + runs.reduce((fewest, run) => fewest + Math.ceil((run.end - run.start) / longest), 0);
  }, 0);
}
