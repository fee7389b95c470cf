import { requestsFor, scopeIdsOf, type UsageRequest } from "../../domain/planning/request.ts";
import { controlWindows } from "../../domain/planning/windows.ts";
import { intersect, subtract, union } from "../../domain/time/intervals.ts";
import type { Interval, Window } from "../../domain/time/window.ts";
import type { Meter } from "../../domain/usage/meter.ts";
import { GROUPINGS } from "../../domain/usage/record.ts";
import type { ScopeState } from "../../store/catalog/scopes.ts";
import { noteNamedAccess, splitByAccess } from "../../store/catalog/workspace-access.ts";
import { drawStamp } from "../../store/load/fetch-ledger.ts";
import { type Finding, keepFindings } from "../../store/proof/control-findings.ts";
import { compareTotals, type TotalDifference } from "../../store/proof/control-totals.ts";
import { type OnProgress, sequentially } from "../extract/sequentially.ts";
import type { OpenSource } from "../source/source.ts";
import type { CheckContext, TotalsFailure } from "./check-context.ts";
import { explain, narrowest } from "./known-findings.ts";
import { refetchDays } from "./refetch-days.ts";
import { fetchTotals } from "./window-totals.ts";

/** Checks the sums of days against windows of weeks, months and years. */
export async function checkStrides(context: CheckContext, onProgress?: OnProgress) {
  const { source, meter, states, final, range } = context;
  const known = context.known.filter((one) => one.kind === "stride_total");
  const requests = requestsOver(meter, states, controlWindows(range, final));
  const first = await compareAll(source, requests, onProgress);
  const isNew = (one: TotalDifference) => explain(one, known) === undefined;
  const doubtful = first.differences.filter(isNew);

  const refetched = await refetchDays(source, states, doubtful, meter);
  const again = await compareAll(source, onlyWith(requests, doubtful));
  const standing = again.differences
    .filter(isNew)
    .map((one): Finding => ({ ...one, kind: "stride_total", state: "platform_disagrees" }));
  const findings = narrowest([...first.differences.flatMap((one) => explain(one, known) ?? []), ...standing]);
  // What the second pass could not compare is still in doubt: its earlier findings stay as they are.
  const compared = [...first.compared, ...again.compared].filter(
    ({ scopeId, period }) =>
      !doubtful.some((one) => one.scopeId === scopeId && intersect([one], [period]).length > 0) ||
      again.compared.some((one) => one.scopeId === scopeId && one.period.start === period.start),
  );
  const { fetchNumber } = await drawStamp(source.store.db);
  await keepFindings(source.store, { kind: "stride_total", compared, fetchNumber }, findings);

  const proved = new Map<number, Interval[]>();
  for (const { scopeId, period } of compared) {
    proved.set(scopeId, union(proved.get(scopeId) ?? [], [period]));
  }
  return {
    requests: requests.length + refetched.requests + again.requests,
    /** By scope: the windows that were compared to the end. Differences may be left in them. */
    proved,
    unverified: first.unverified + again.unverified,
    restated: refetched.restated,
    failed: [...first.failed, ...again.failed],
    refetchFailures: refetched.failed,
  };
}

/** Requests for each window, of the scopes whose time is final all over it. */
function requestsOver(
  meter: Meter,
  states: readonly ScopeState[],
  windows: readonly Window[],
): UsageRequest[] {
  return windows.flatMap((window) => {
    const fit = states.filter(({ coverage }) => {
      const final = coverage.filter((loaded) => loaded.final);
      return subtract([window], final).length === 0;
    });
    return GROUPINGS.flatMap((groupBy) => {
      const members = fit
        .filter((state) => state.groupBy === groupBy)
        .map(({ workspaceId, scopeId }) => ({ workspaceId, scopeId }));
      return requestsFor({ meter, groupBy, window, members });
    });
  });
}

/** Of each request the members that differ within its window. */
function onlyWith(
  requests: readonly UsageRequest[],
  differences: readonly TotalDifference[],
): UsageRequest[] {
  return requests.flatMap((request) => {
    const members = request.members.filter(({ scopeId }) =>
      differences.some((one) => one.scopeId === scopeId && intersect([one], [request.window]).length > 0),
    );
    return members.length === 0 ? [] : [{ ...request, members }];
  });
}

/** `compared`: scopes and windows whose totals were compared with the days. */
async function compareAll(source: OpenSource, requests: readonly UsageRequest[], onProgress?: OnProgress) {
  const { store } = source;
  const compared: { scopeId: number; period: Interval }[] = [];
  const differences: TotalDifference[] = [];
  let unverifiedWindows = 0;
  const work = async (request: UsageRequest) => {
    const { stamp, answer, parts, totals } = await fetchTotals(source, request);
    const scopeIds = scopeIdsOf(request);
    await store.statement((db) => noteNamedAccess(db, { answer, scopeIds, stamp }));
    const { proven, unverified } = await splitByAccess(store.db, { answer, scopeIds, stamp });
    unverifiedWindows += unverified.length;
    const comparison = await compareTotals(store, { scopeIds: proven, parts, totals, stamp });
    compared.push(...comparison.compared.map((scopeId) => ({ scopeId, period: request.window })));
    differences.push(...comparison.differences);
  };
  const failures = await sequentially(source, requests, { work, onProgress });
  const failed = failures.map(({ one, ...reason }): TotalsFailure => ({ request: one, ...reason }));
  return { requests: requests.length, compared, differences, failed, unverified: unverifiedWindows };
}
