import { planTasks } from "../../domain/planning/plan-tasks.ts";
import { type Member, scopeIdsOf, type UsageRequest } from "../../domain/planning/request.ts";
import { intersect, spanOf } from "../../domain/time/intervals.ts";
import { HOUR_MS, STRIDE_MS } from "../../domain/time/stride.ts";
import type { Interval, Window } from "../../domain/time/window.ts";
import type { Meter } from "../../domain/usage/meter.ts";
import type { ResponseCollector } from "../../domain/usage/response.ts";
import type { ResponseKey } from "../../domain/usage/response-keys.ts";
import { noteNamedAccess, splitByAccess } from "../../store/access/workspace-access.ts";
import type { ScopeState } from "../../store/catalog/scopes.ts";
import { keepFindings } from "../../store/proof/control-findings.ts";
import type { ControlTotal, TotalDifference } from "../../store/proof/control-totals.ts";
import type { Finding, FindingKind } from "../../store/proof/write-differences.ts";
import { drawFetchToken } from "../../store/work/fetch-ledger.ts";
import { runInline } from "../extract/run-inline.ts";
import { type OnProgress, sequentially } from "../extract/sequentially.ts";
import { addUpUsable, fetchUsage } from "../source/fetch-usage.ts";
import { type OpenSource, startOf } from "../source/source.ts";

export interface CheckContext {
  readonly source: OpenSource;
  readonly meter: Meter;
  readonly states: readonly ScopeState[];
  readonly final: Interval;
  readonly range: Interval;
  /** Findings of earlier checks. Their days are not fetched again while the numbers are the same. */
  readonly known: readonly Finding[];
}

export interface CheckedPart {
  readonly requests: number;
  readonly restated: number;
  readonly refetchFailures: number;
  readonly unverified: number;
  readonly failed: readonly TotalsFailure[];
}

export interface TotalsFailure {
  readonly request: UsageRequest;
  readonly code: string;
  readonly message: string;
}

export interface ComparedTime {
  readonly scopeId: number;
  readonly period: Interval;
}

interface Comparison {
  readonly compared: readonly ComparedTime[];
  readonly differences: readonly TotalDifference[];
}

interface WindowCheck {
  readonly kind: FindingKind;
  readonly requests: readonly UsageRequest[];
  readonly compare: (
    totals: Awaited<ReturnType<typeof fetchTotals>>,
    about: { readonly scopeIds: readonly number[]; readonly window: Window },
  ) => Promise<Comparison>;
  readonly sidesOf: (differences: readonly TotalDifference[]) => readonly Side[];
  readonly isMeant?: (difference: TotalDifference) => boolean;
}

/**
 * Compares the totals of windows with the stored figures. If a window differs and no known finding explains this, its days are
 * fetched and its total is requested again. A remaining difference is kept as a finding. No figure is changed, because either
 * number may be wrong.
 */
export async function checkWindows(
  { source, known: all }: CheckContext,
  check: WindowCheck,
  onProgress?: OnProgress,
): Promise<CheckedPart & { readonly compared: readonly ComparedTime[] }> {
  const { kind, requests, sidesOf, isMeant = () => true } = check;
  const known = all.filter((one) => one.kind === kind);
  const isNew = (one: TotalDifference) => isMeant(one) && explain(one, known) === undefined;
  const first = await compareAll(source, { ...check, requests }, onProgress);
  const doubtful = first.differences.filter(isNew);
  const refetched = await refetchDays(source, sidesOf(doubtful));
  const again = await compareAll(source, { ...check, requests: onlyWith(requests, doubtful) });
  // Windows that the second pass could not compare keep their earlier findings.
  const compared = [...first.compared, ...again.compared].filter(
    ({ scopeId, period }) =>
      !doubtful.some((one) => one.scopeId === scopeId && intersect([one], [period]).length > 0) ||
      again.compared.some((one) => one.scopeId === scopeId && one.period.start === period.start),
  );
  await keepTotalDifferences(source, {
    kind,
    compared,
    differences: [
      ...first.differences.flatMap((one) => explain(one, known) ?? []),
      ...again.differences.filter(isNew),
    ],
  });
  return {
    requests: requests.length + refetched.requests + again.requests,
    restated: refetched.restated,
    refetchFailures: refetched.refetchFailures,
    unverified: first.unverified + again.unverified,
    failed: [...first.failed, ...again.failed],
    compared,
  };
}

async function compareAll(
  source: OpenSource,
  { requests, compare }: Pick<WindowCheck, "requests" | "compare">,
  onProgress?: OnProgress,
) {
  const { store } = source;
  const compared: ComparedTime[] = [];
  const differences: TotalDifference[] = [];
  let unverified = 0;
  const work = async (request: UsageRequest) => {
    const totals = await fetchTotals(source, request);
    const { response, fetchToken } = totals;
    const scopeIds = scopeIdsOf(request);
    await store.statement((db) =>
      noteNamedAccess(db, { meter: request.meter, response, scopeIds, fetchToken }),
    );
    const access = await splitByAccess(store.db, { response, scopeIds, fetchToken });
    unverified += access.unverified.length;
    const comparison = await compare(totals, { scopeIds: access.proven, window: request.window });
    compared.push(...comparison.compared);
    differences.push(...comparison.differences);
  };
  const failures = await sequentially(source, requests, { work, onProgress });
  const failed = failures.map(({ one, ...reason }): TotalsFailure => ({ request: one, ...reason }));
  return { requests: requests.length, compared, differences, failed, unverified };
}

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

/** Keeps only the narrowest differences as findings. Ends the other findings of the compared time. */
export async function keepTotalDifferences(
  { store }: OpenSource,
  found: {
    kind: FindingKind;
    compared: readonly ComparedTime[];
    differences: readonly TotalDifference[];
  },
): Promise<void> {
  const { kind, compared, differences } = found;
  const findings = differences.map((one): Finding => ({ ...one, kind, state: "platform_disagrees" }));
  const { fetchNumber } = await drawFetchToken(store.db);
  await keepFindings(store, { kind, compared, fetchNumber }, narrowest(findings));
}

export function isKnown(difference: TotalDifference, kind: FindingKind, known: readonly Finding[]): boolean {
  return known.some(
    (finding) =>
      finding.kind === kind &&
      finding.scopeId === difference.scopeId &&
      finding.measure === difference.measure &&
      finding.start === difference.start &&
      finding.end === difference.end &&
      finding.storedTraces === difference.storedTraces &&
      finding.controlTraces === difference.controlTraces,
  );
}

/** Most ids in the totals of a window. A year may have several times as many as a window that is loaded. */
const MOST_KEYS = 1_000_000;

/** Accepts every bucket, because a sum does not depend on the platform's grid. */
const ANY_GRID = { start: 0, end: 8.64e15, stride: "hour" } as const;

export async function fetchTotals(source: OpenSource, request: UsageRequest) {
  return fetchUsage(source, { purpose: "reconcile", request }, async ({ fetchToken }) => {
    const response = await addUpUsable(source, request, { grid: ANY_GRID, mostKeys: MOST_KEYS });
    const { records, traces } = response;
    const result = { fetchToken, response, ...totalsOf(response, request) };
    return { outcome: "compared", records, traces, result };
  });
}

/** Returns totals by bucket if the buckets tile the window, else of the whole window: its sum is right on any grid. */
function totalsOf(response: ResponseCollector, { window, members }: UsageRequest) {
  const { start, end } = window;
  const size = STRIDE_MS[window.stride];
  let tiles = (end - start) % size === 0;
  for (const { bucketHour } of response.rows()) {
    const at = bucketHour * HOUR_MS;
    if (at < start || at >= end || (at - start) % size !== 0) tiles = false;
  }
  const length = tiles ? size : end - start;
  const parts = Array.from({ length: (end - start) / length }, (_, n) => ({
    start: start + n * length,
    end: start + (n + 1) * length,
  }));
  const totals: ControlTotal[] = [];
  for (const { id: key, bucketHour, traces } of response.rows()) {
    const { workspace, dimensionId, measure } = response.keys[key] as ResponseKey;
    const { scopeId } = members[workspace] as Member;
    const part = tiles ? (bucketHour * HOUR_MS - start) / size : 0;
    totals.push({ scopeId, part, dimensionId, measure, traces });
  }
  return { parts, totals };
}

/** Returns the findings inside a difference if their errors add up to it exactly. All findings are of one kind. */
export function explain(difference: TotalDifference, findings: readonly Finding[]): Finding[] | undefined {
  const parts = findings.filter(
    (one) =>
      one.scopeId === difference.scopeId &&
      one.dimensionId === difference.dimensionId &&
      one.measure === difference.measure &&
      one.start >= difference.start &&
      one.end <= difference.end,
  );
  const sum = parts.reduce((total, one) => total + errorOf(one), 0);
  return parts.length > 0 && sum === errorOf(difference) ? parts : undefined;
}

/** Leaves out findings that narrower findings explain. Windows overlap, so one wrong day can be in several findings. */
export function narrowest(findings: readonly Finding[]): Finding[] {
  const keyOf = ({ scopeId, measure, dimensionId, start, end }: Finding) =>
    `${scopeId} ${measure} ${dimensionId} ${start} ${end}`;
  const distinct = [...new Map(findings.map((one) => [keyOf(one), one])).values()];
  return distinct.filter(
    (one) =>
      explain(
        one,
        distinct.filter((other) => other !== one),
      ) === undefined,
  );
}

function errorOf({ storedTraces, controlTraces }: TotalDifference): number {
  return (controlTraces ?? 0) - (storedTraces ?? 0);
}

interface Side {
  readonly meter: Meter;
  readonly states: readonly ScopeState[];
  readonly days: readonly (Interval & { readonly scopeId: number })[];
}

export async function refetchDays(source: OpenSource, sides: readonly Side[]) {
  const done = { requests: 0, restated: 0, refetchFailures: 0 };
  for (const { meter, states, days } of sides) {
    const byScope = Map.groupBy(days, (one) => one.scopeId);
    const tasks = planTasks({
      meter,
      scopes: states.map((state) => ({ ...state, missing: byScope.get(state.scopeId) ?? [] })),
      wanted: [{ stride: "day", range: spanOf(days) }],
      dataStart: startOf(source, meter),
    });
    const { counts, failures } = await runInline(source, tasks, { isRepair: true });
    done.requests += counts.reduce((sum, one) => sum + one.requests, 0);
    done.restated += counts.reduce((sum, one) => sum + one.rows.restated, 0);
    done.refetchFailures += failures.length;
  }
  return done;
}
