import { requestsFor, type UsageRequest } from "../../domain/planning/request.ts";
import { controlWindows } from "../../domain/planning/windows.ts";
import { intersect, subtract, totalMs } from "../../domain/time/intervals.ts";
import { DAY_MS } from "../../domain/time/stride.ts";
import type { Interval, Window } from "../../domain/time/window.ts";
import { METER, type Meter } from "../../domain/usage/meter.ts";
import { GROUPINGS } from "../../domain/usage/record.ts";
import type { ScopeState } from "../../store/catalog/scopes.ts";
import { keepFindings } from "../../store/proof/control-findings.ts";
import { compareGroupings, compareTotals, type TotalDifference } from "../../store/proof/control-totals.ts";
import { compareTiers, exceedingTiers, type TierPair } from "../../store/proof/tier-totals.ts";
import type { Finding } from "../../store/proof/write-differences.ts";
import { drawFetchToken } from "../../store/work/fetch-ledger.ts";
import type { OnProgress } from "../extract/sequentially.ts";
import {
  type CheckContext,
  type CheckedPart,
  type ComparedTime,
  checkWindows,
  isKnown,
  keepTotalDifferences,
  refetchDays,
} from "./control.ts";

export async function checkStrides(
  context: CheckContext,
  onProgress?: OnProgress,
): Promise<CheckedPart & { readonly compared: readonly ComparedTime[] }> {
  const { source, meter, states, final, range } = context;
  return checkWindows(
    context,
    {
      kind: "stride_total",
      requests: requestsOver(meter, states, controlWindows(range, final)),
      sidesOf: (days) => [{ meter, states, days }],
      compare: async ({ parts, totals, fetchToken }, { scopeIds, window }) => {
        const { compared, differences } = await compareTotals(source.store, {
          scopeIds,
          parts,
          totals,
          fetchToken,
        });
        return { compared: compared.map((scopeId) => ({ scopeId, period: window })), differences };
      },
    },
    onProgress,
  );
}

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

/**
 * Compares the sums by project, user and key with those by workspace, day by day. Fetches both sides of differing days again.
 * Where a workspace has more traces than a dimension names, views show the rest as unattributed.
 */
export async function checkGroupings({
  source,
  meter,
  states,
  range,
  known,
}: CheckContext): Promise<CheckedPart> {
  const { store } = source;
  const scopeIds = states.map((state) => state.scopeId);
  const compare = () => compareGroupings(store, { scopeIds, measures: METER[meter].measures, range });
  const before = await compare();
  const doubtful = before.filter((one) => !isKnown(one, "grouping_total", known));
  const days = doubtful.flatMap(({ scopeId, totalScopeId, start, end }) => [
    { scopeId, start, end },
    { scopeId: totalScopeId, start, end },
  ]);
  const refetched = await refetchDays(source, [{ meter, states, days }]);
  const after = doubtful.length === 0 ? before : await compare();
  const findings = after.map(
    ({ totalScopeId: _, ...one }): Finding => ({
      ...one,
      kind: "grouping_total",
      state: (one.controlTraces ?? 0) > (one.storedTraces ?? 0) ? "unattributed" : "platform_disagrees",
    }),
  );
  const { fetchNumber } = await drawFetchToken(store.db);
  const compared = states.map(({ scopeId }) => ({ scopeId, period: range }));
  await keepFindings(store, { kind: "grouping_total", compared, fetchNumber }, findings);
  return { ...refetched, unverified: 0, failed: [] };
}

interface Pair extends TierPair {
  readonly final: readonly Interval[];
}

/**
 * Checks for each workspace that long-lived and short-lived traces add up to all traces. Fetches differing days again on both
 * sides. A remaining difference is kept as `tier_total`; days with more long-lived traces than traces only as `tier_exceeds`.
 * `days`: workspace days whose tiers were compared.
 */
export async function checkTiers(
  traces: CheckContext,
  longlived: CheckContext,
): Promise<CheckedPart & { readonly days: number }> {
  const { source, range, final, known } = longlived;
  const { store } = source;
  const pairs = pairsOf(traces.states, longlived.states);
  const sidesOf = (days: readonly TotalDifference[]) => [
    { meter: longlived.meter, states: longlived.states, days },
    {
      meter: traces.meter,
      states: traces.states,
      days: days.map((one) => {
        const pair = pairs.find(({ scopeId }) => scopeId === one.scopeId) as Pair;
        return { ...one, scopeId: pair.allScopeId };
      }),
    },
  ];

  const before = await exceedingTiers(store, { pairs, range });
  const excess = await refetchDays(
    source,
    sidesOf(before.filter((one) => !isKnown(one, "tier_exceeds", known))),
  );
  const exceeding = excess.requests === 0 ? before : await exceedingTiers(store, { pairs, range });
  await keepTotalDifferences(source, {
    kind: "tier_exceeds",
    compared: pairs.map(({ scopeId }) => ({ scopeId, period: range })),
    differences: exceeding,
  });

  const { compared, ...checked } = await checkWindows(longlived, {
    kind: "tier_total",
    requests: controlWindows(range, final).flatMap((window) =>
      requestsFor({
        meter: "shortlived",
        groupBy: "workspace",
        window,
        members: pairs.filter((pair) => subtract([window], pair.final).length === 0),
      }),
    ),
    sidesOf,
    isMeant: (one) =>
      !exceeding.some((other) => other.scopeId === one.scopeId && intersect([other], [one]).length > 0),
    compare: ({ parts, totals, fetchToken }, { scopeIds }) =>
      compareTiers(store, {
        pairs: pairs.filter(({ scopeId }) => scopeIds.includes(scopeId)),
        parts,
        totals,
        fetchToken,
      }),
  });
  const byPair = Map.groupBy(compared, ({ scopeId }) => scopeId);
  const addedUp = [...byPair.values()].map((times) =>
    intersect(
      times.map(({ period }) => period),
      [range],
    ),
  );
  return {
    ...checked,
    requests: checked.requests + excess.requests,
    restated: checked.restated + excess.restated,
    refetchFailures: checked.refetchFailures + excess.refetchFailures,
    days: addedUp.reduce((sum, time) => sum + totalMs(time) / DAY_MS, 0),
  };
}

function pairsOf(all: readonly ScopeState[], longlived: readonly ScopeState[]): Pair[] {
  const byWorkspace = (states: readonly ScopeState[]) =>
    states.filter(({ groupBy }) => groupBy === "workspace");
  const isFinal = ({ final }: { final: boolean }) => final;
  return byWorkspace(longlived).flatMap(({ workspaceId, scopeId, coverage }) => {
    const other = byWorkspace(all).find((one) => one.workspaceId === workspaceId);
    if (other === undefined) return [];
    const final = intersect(coverage.filter(isFinal), other.coverage.filter(isFinal));
    return [{ workspaceId, scopeId, allScopeId: other.scopeId, final }];
  });
}
