import { requestsFor, scopeIdsOf, type UsageRequest } from "../../domain/planning/request.ts";
import { controlWindows } from "../../domain/planning/windows.ts";
import { intersect, subtract, totalMs, union } from "../../domain/time/intervals.ts";
import { DAY_MS } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import type { ScopeState } from "../../store/catalog/scopes.ts";
import { noteNamedAccess, splitByAccess } from "../../store/catalog/workspace-access.ts";
import { drawStamp } from "../../store/load/fetch-ledger.ts";
import { type Finding, type FindingKind, keepFindings } from "../../store/proof/control-findings.ts";
import type { TotalDifference } from "../../store/proof/control-totals.ts";
import { compareTiers, exceedingTiers, type TierPair } from "../../store/proof/tier-totals.ts";
import { sequentially } from "../extract/sequentially.ts";
import type { CheckContext, TotalsFailure } from "./check-context.ts";
import { explain, narrowest } from "./known-findings.ts";
import { refetchDays } from "./refetch-days.ts";
import { fetchTotals } from "./window-totals.ts";

interface Pair extends TierPair {
  /** Where both are final. */
  readonly final: readonly Interval[];
}

/**
 * Checks that long-lived and short-lived traces add up to all, by workspace: the short-lived ones are asked for as totals in the
 * coarsest windows that fit. Days that do not add up are fetched again on both sides. What stays is kept as `tier_total`, and days
 * with more long-lived traces than traces as `tier_exceeds` alone. Nothing is changed by guess: which number is wrong is not known.
 */
export async function checkTiers(traces: CheckContext, longlived: CheckContext) {
  const { source, range, final } = longlived;
  const { store } = source;
  const pairs = pairsOf(traces.states, longlived.states);
  const known = (kind: FindingKind) => longlived.known.filter((one) => one.kind === kind);
  const refetchBoth = async (differences: readonly TotalDifference[]) => {
    const all = differences.map((one) => {
      const pair = pairs.find(({ scopeId }) => scopeId === one.scopeId) as Pair;
      return { ...one, scopeId: pair.allScopeId };
    });
    const sides = [
      await refetchDays(source, longlived.states, differences, "longlived"),
      await refetchDays(source, traces.states, all),
    ];
    const sum = (of: keyof (typeof sides)[number]) => sides.reduce((total, side) => total + side[of], 0);
    return { requests: sum("requests"), restated: sum("restated"), failed: sum("failed") };
  };

  const isKnown = (one: TotalDifference) =>
    known("tier_exceeds").some(
      (finding) =>
        finding.scopeId === one.scopeId &&
        finding.start === one.start &&
        finding.end === one.end &&
        finding.storedTraces === one.storedTraces &&
        finding.controlTraces === one.controlTraces,
    );
  const before = await exceedingTiers(store, { pairs, range });
  const excess = await refetchBoth(before.filter((one) => !isKnown(one)));
  const exceeding = excess.requests === 0 ? before : await exceedingTiers(store, { pairs, range });
  await keep(longlived, {
    kind: "tier_exceeds",
    compared: pairs.map(({ scopeId }) => ({ scopeId, period: range })),
    differences: exceeding,
  });

  // A day that exceeds is a finding already.
  const isMeant = (one: TotalDifference) =>
    !exceeding.some((other) => other.scopeId === one.scopeId && intersect([other], [one]).length > 0) &&
    explain(one, known("tier_total")) === undefined;
  const requests = controlWindows(range, final).flatMap((window) =>
    requestsFor({
      ...{ meter: "shortlived", groupBy: "workspace", window },
      members: pairs.filter((pair) => subtract([window], pair.final).length === 0),
    }),
  );
  const first = await compareAll(longlived, pairs, requests);
  const doubtful = first.differences.filter(isMeant);
  const refetched = await refetchBoth(doubtful);
  const again = await compareAll(
    longlived,
    pairs,
    doubtful.length === 0
      ? []
      : requests.filter(({ window, members }) =>
          doubtful.some(
            (one) =>
              intersect([one], [window]).length > 0 && members.some(({ scopeId }) => scopeId === one.scopeId),
          ),
        ),
  );
  const standing = again.differences.filter(isMeant);
  const explained = first.differences.flatMap((one) => explain(one, known("tier_total")) ?? []);
  // What could not be compared again is still in doubt: its earlier findings stay as they are.
  const compared = [...first.compared, ...again.compared].filter(
    ({ scopeId, period }) =>
      !doubtful.some((one) => one.scopeId === scopeId && intersect([one], [period]).length > 0) ||
      again.compared.some((one) => one.scopeId === scopeId && one.period.start === period.start),
  );
  await keep(longlived, { kind: "tier_total", compared, differences: [...explained, ...standing] });

  const byPair = Map.groupBy(compared, ({ scopeId }) => scopeId);
  return {
    requests: requests.length + again.requests + excess.requests + refetched.requests,
    /** Days x workspaces whose tiers were added up. */
    days: [...byPair.values()].reduce(
      (sum, parts) =>
        sum +
        totalMs(
          intersect(
            union(
              parts.map(({ period }) => period),
              [],
            ),
            [range],
          ),
        ) /
          DAY_MS,
      0,
    ),
    restated: excess.restated + refetched.restated,
    refetchFailures: excess.failed + refetched.failed,
    unverified: first.unverified + again.unverified,
    failed: [...first.failed, ...again.failed],
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

async function keep(
  { source }: CheckContext,
  found: {
    kind: FindingKind;
    compared: readonly { scopeId: number; period: Interval }[];
    differences: readonly TotalDifference[];
  },
): Promise<void> {
  const { kind, compared, differences } = found;
  const findings = differences.map((one): Finding => ({ ...one, kind, state: "platform_disagrees" }));
  const { fetchNumber } = await drawStamp(source.store.db);
  await keepFindings(source.store, { kind, compared, fetchNumber }, narrowest(findings));
}

async function compareAll(
  { source }: CheckContext,
  pairs: readonly Pair[],
  requests: readonly UsageRequest[],
) {
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
    const asked = pairs.filter(({ scopeId }) => proven.includes(scopeId));
    const comparison = await compareTiers(store, { pairs: asked, parts, totals, stamp });
    compared.push(...comparison.compared);
    differences.push(...comparison.differences);
  };
  const failures = await sequentially(source, requests, { work });
  const failed = failures.map(({ one, ...reason }): TotalsFailure => ({ request: one, ...reason }));
  return { requests: requests.length, compared, differences, failed, unverified: unverifiedWindows };
}
