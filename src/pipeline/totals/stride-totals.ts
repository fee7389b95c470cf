import { controlWindows } from "../../domain/planning/control.ts";
import { WORKSPACES_PER_REQUEST } from "../../domain/planning/slice.ts";
import { intersect, subtract, totalMs, union } from "../../domain/time/intervals.ts";
import { DAY_MS } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import type { ScopeState } from "../../store/catalog/scopes.ts";
import { noteNamedAccess, splitByAccess } from "../../store/catalog/workspace-access.ts";
import { drawStamp } from "../../store/load/fetch-ledger.ts";
import { type Finding, keepFindings } from "../../store/reconcile/control-findings.ts";
import { compareTotals, type TotalDifference } from "../../store/reconcile/control-totals.ts";
import { sequentially } from "../extract/sequentially.ts";
import type { OpenSource } from "../source/source.ts";
import type { CheckContext, TotalsFailure } from "./check-context.ts";
import { findGuiltyDays } from "./guilty-days.ts";
import { refetchDays } from "./refetch-days.ts";
import { fetchTotals, type TotalsRequest } from "./window-totals.ts";

interface StrideCheck {
  readonly requests: number;
  readonly daysProved: number;
  readonly daysWaiting: number;
  readonly restated: number;
  readonly findings: readonly Finding[];
  readonly failed: readonly TotalsFailure[];
  readonly refetchFailures: number;
}

/** Holds the sums of days against windows of weeks, months and years. */
export async function checkStrides(
  context: CheckContext,
  onProgress: (progress: { done: number; total: number }) => void,
): Promise<StrideCheck> {
  const { source, states, settled, range } = context;
  const requests = requestsOver(states, controlWindows(range, settled));
  const first = await holdAll(source, requests, onProgress);
  const known = first.differences.flatMap((one) => knownPartsOf(context.known, one) ?? []);
  const doubtful = first.differences.filter((one) => knownPartsOf(context.known, one) === undefined);

  const refetched = await refetchDays(source, states, doubtful);
  const again = await holdAll(source, onlyWith(requests, doubtful), () => {});
  const standing = again.differences.filter((one) => knownPartsOf(context.known, one) === undefined);
  const search = await findGuiltyDays(source, { states, settled, standing, dirty: first.differences });
  const findings = eachOnce([...known, ...search.findings]);
  const compared = [...first.held, ...again.held];
  const { fetchNumber } = await drawStamp(source.store.db);
  // What the second pass could not hold is still in doubt: its earlier findings stay as they are.
  const settledCompared = compared.filter(
    ({ scopeId, period }) =>
      !doubtful.some((one) => one.scopeId === scopeId && intersect([one], [period]).length > 0) ||
      again.held.some((one) => one.scopeId === scopeId && one.period.start === period.start),
  );
  await keepFindings(
    source.store,
    { kind: "stride_total", compared: settledCompared, fetchNumber },
    findings,
  );

  const proved = new Map<number, Interval[]>();
  for (const { scopeId, period } of first.held) {
    proved.set(scopeId, intersect(union(proved.get(scopeId) ?? [], [period]), [range]));
  }
  const daysProved = [...proved.values()].reduce((sum, parts) => sum + totalMs(parts) / DAY_MS, 0);
  return {
    requests: first.requests + refetched.requests + again.requests + search.requests,
    daysProved,
    daysWaiting: (states.length * (range.end - range.start)) / DAY_MS - daysProved,
    restated: refetched.restated,
    findings,
    failed: [...first.failed, ...again.failed],
    refetchFailures: refetched.failed,
  };
}

/** One request for each scope and window, those by workspace together; only over time that is settled all along. */
function requestsOver(states: readonly ScopeState[], windows: readonly Interval[]): TotalsRequest[] {
  return windows.flatMap((window) => {
    const fit = states.filter(
      ({ coverage }) =>
        subtract(
          [window],
          coverage.filter((fragment) => fragment.settled),
        ).length === 0,
    );
    const groups = Map.groupBy(fit, ({ groupBy, workspaceId }) =>
      groupBy === "workspace" ? "workspace" : `${groupBy} ${workspaceId}`,
    );
    return [...groups.values()].flatMap((group) => {
      const count = Math.ceil(group.length / WORKSPACES_PER_REQUEST);
      return Array.from({ length: count }, (_, i) => {
        const batch = group.slice(i * WORKSPACES_PER_REQUEST, (i + 1) * WORKSPACES_PER_REQUEST);
        return {
          groupBy: (batch[0] as ScopeState).groupBy,
          window,
          workspaceIds: batch.map((state) => state.workspaceId),
          scopeIds: batch.map((state) => state.scopeId),
        };
      });
    });
  });
}

/** Of each request the scopes that differ within its window. */
function onlyWith(
  requests: readonly TotalsRequest[],
  differences: readonly TotalDifference[],
): TotalsRequest[] {
  return requests.flatMap((request) => {
    const isMeant = (scopeId: number) =>
      differences.some((one) => one.scopeId === scopeId && intersect([one], [request.window]).length > 0);
    const kept = request.scopeIds.flatMap((scopeId, i) => (isMeant(scopeId) ? [i] : []));
    if (kept.length === 0) return [];
    return [
      {
        ...request,
        scopeIds: kept.map((i) => request.scopeIds[i] as number),
        workspaceIds: kept.map((i) => request.workspaceIds[i] as string),
      },
    ];
  });
}

interface Held {
  readonly requests: number;
  /** Scopes and windows whose totals were held against the days. */
  readonly held: readonly { scopeId: number; period: Interval }[];
  readonly differences: readonly TotalDifference[];
  readonly failed: readonly TotalsFailure[];
}

async function holdAll(
  source: OpenSource,
  requests: readonly TotalsRequest[],
  onProgress: (progress: { done: number; total: number }) => void,
): Promise<Held> {
  const held: { scopeId: number; period: Interval }[] = [];
  const differences: TotalDifference[] = [];
  const work = async (request: TotalsRequest) => {
    const { stamp, answer, parts, totals } = await fetchTotals(source, request);
    const { scopeIds, window } = request;
    await source.store.statement((db) => noteNamedAccess(db, { answer, scopeIds, stamp }));
    const { proven } = await splitByAccess(source.store.db, { answer, scopeIds, stamp });
    const compared = await compareTotals(source.store, { scopeIds: proven, parts, totals, stamp });
    held.push(...compared.compared.map((scopeId) => ({ scopeId, period: window })));
    differences.push(...compared.differences);
  };
  const failures = await sequentially(source, requests, { work, onProgress });
  const failed = failures.map(({ one, ...reason }) => ({ request: one, ...reason }));
  return { requests: requests.length, held, differences, failed };
}

const errorOf = (one: Pick<TotalDifference, "storedTraces" | "controlTraces">) =>
  (one.controlTraces ?? 0) - (one.storedTraces ?? 0);

/** Windows may overlap, and then each finds the same error: it is shown once, and as exactly as it was found. */
function eachOnce(findings: readonly Finding[]): Finding[] {
  const keyOf = ({ scopeId, dimensionId, start, end }: Finding) =>
    `${scopeId} ${dimensionId} ${start} ${end}`;
  const distinct = [...new Map(findings.map((one) => [keyOf(one), one])).values()];
  return distinct.filter((one) => {
    const others = distinct.filter((other) => other !== one);
    return knownPartsOf(others, one) === undefined;
  });
}

/** The known findings that make up a difference to the trace; undefined where they do not. */
function knownPartsOf(known: readonly Finding[], difference: TotalDifference): Finding[] | undefined {
  const parts = known.filter(
    (one) =>
      one.kind === "stride_total" &&
      one.scopeId === difference.scopeId &&
      one.dimensionId === difference.dimensionId &&
      one.start >= difference.start &&
      one.end <= difference.end,
  );
  const sum = parts.reduce((total, one) => total + errorOf(one), 0);
  return parts.length > 0 && sum === errorOf(difference) ? parts : undefined;
}
