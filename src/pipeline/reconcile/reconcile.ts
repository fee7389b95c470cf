import { type CoveredScope, coverSlices } from "../../domain/planning/cover.ts";
import { planSlices } from "../../domain/planning/plan-slices.ts";
import type { UsageRequest } from "../../domain/planning/request.ts";
import { alignRange } from "../../domain/planning/windows.ts";
import { intersect, normalize, spanOf } from "../../domain/time/intervals.ts";
import type { Stride } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";
import type { ScopeState } from "../../store/catalog/scopes.ts";
import { type Difference, openBuckets, unresolvedDifferences } from "../../store/reconcile/differences.ts";
import { type RunResult, runInline } from "../extract/run-inline.ts";
import type { OnProgress } from "../extract/sequentially.ts";
import { statesOf } from "../source/scope-states.ts";
import type { OpenSource } from "../source/source.ts";
import { type ComparedSlices, compareSlices } from "./compare-slices.ts";

export interface ReconcileRequest {
  readonly range: Interval;
  readonly stride: Stride;
  readonly groupings?: readonly GroupBy[] | undefined;
  readonly repair: boolean;
}

export interface ReconcileResult extends Omit<ComparedSlices, "repaired"> {
  /** Differences left at the end in the range that was asked for, the first thousand of them. */
  readonly differences: readonly Difference[];
  /** How many are left: to be fetched again, and those in which the platform contradicts itself. */
  readonly open: number;
  readonly platformDisagrees: number;
  /** What a repair fetched again; undefined where nothing was to repair. */
  readonly repaired?: {
    /** Differences that were asked about again, and those of them that are gone. */
    readonly differences: number;
    readonly mended: number;
    readonly run: RunResult;
  };
}

/** Differences that a result names. View reporting.usage_reconciliation has all of them. */
const MOST_NAMED = 1000;

/**
 * Reconciles what is stored with the platform's CSV export: settled buckets only. With `repair`, the JSON and then the
 * export of what differs are asked for again, in the fewest windows that cover it. A stale count is replaced. Where the
 * platform's two answers differ still, the count of the JSON stays and the difference is kept.
 */
export async function reconcile(
  source: OpenSource,
  { stride, repair, groupings = GROUPINGS, range: asked }: ReconcileRequest,
  onProgress?: OnProgress,
): Promise<ReconcileResult> {
  const states = await statesOf(source, stride, groupings);
  const range = alignRange(asked, stride, source.dataStart);
  const partsOf = () => (range === undefined ? [] : [range]);
  return reconcileParts(source, { states, stride, repair, partsOf }, onProgress);
}

interface Parts {
  readonly states: readonly ScopeState[];
  readonly stride: Stride;
  readonly repair: boolean;
  /** The time to compare with the export. What of it is not settled is left out. */
  readonly partsOf: (state: ScopeState) => readonly Interval[];
}

/** The one way in which anything is reconciled, by hand or by schedule. */
export async function reconcileParts(
  source: OpenSource,
  { states, stride, repair, partsOf }: Parts,
  onProgress?: OnProgress,
): Promise<ReconcileResult> {
  const scopes = states.map((state) => ({
    ...state,
    settled: intersect(
      state.coverage.filter((loaded) => loaded.settled),
      partsOf(state),
    ),
  }));
  const range = spanOf(scopes.flatMap((scope) => scope.settled));
  const slices = planSlices({
    scopes: scopes.map((scope) => ({ ...scope, missing: scope.settled })),
    wanted: [{ stride, range }],
    dataStart: source.dataStart,
  });
  const { repaired: _, ...first } = await compareSlices(source, slices, onProgress);
  const repaired = repair ? await repairOpen(source, { scopes, stride, range }) : undefined;
  const scopeIds = scopes.map((scope) => scope.scopeId);
  const left = await unresolvedDifferences(source.store.db, { scopeIds, range, most: MOST_NAMED });
  const { first: differences, open, platformDisagrees } = left;
  const result = { ...first, differences, open, platformDisagrees };
  if (repaired === undefined) return result;
  const { again, run } = repaired;
  return {
    ...result,
    requests: first.requests + again.requests,
    failures: [...first.failures, ...again.failures],
    unverified: first.unverified + again.unverified,
    moved: first.moved + again.moved,
    repaired: { differences: repaired.differences, mended: again.repaired, run },
  };
}

/** Asks again about every open difference of this time: the JSON, then the export. Undefined where there is none. */
async function repairOpen(
  source: OpenSource,
  {
    scopes,
    stride,
    range,
  }: { scopes: readonly (ScopeState & { settled: Interval[] })[]; stride: Stride; range: Interval },
): Promise<{ differences: number; run: RunResult; again: ComparedSlices } | undefined> {
  const scopeIds = scopes.map((scope) => scope.scopeId);
  const all = await openBuckets(source.store.db, { scopeIds, range });
  const open = Map.groupBy(all, (one) => one.scopeId);
  const slices: UsageRequest[] = coverSlices(
    scopes.flatMap((scope): CoveredScope[] => {
      const buckets = open.get(scope.scopeId)?.map(({ bucketStart }) => bucketStart);
      return buckets === undefined ? [] : [{ ...scope, buckets, within: normalize(scope.settled) }];
    }),
    stride,
  );
  if (slices.length === 0) return undefined;
  const run = await runInline(source, slices);
  const again = await compareSlices(source, slices);
  return { differences: all.reduce((sum, one) => sum + one.differences, 0), run, again };
}
