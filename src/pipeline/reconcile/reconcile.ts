import { type CoveredScope, coverSlices } from "../../domain/planning/cover.ts";
import { type KnownScope, planSlices, type Slice } from "../../domain/planning/slice.ts";
import { alignRange } from "../../domain/planning/windows.ts";
import { intersect, normalize, subtract } from "../../domain/time/intervals.ts";
import type { Stride } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";
import { ensureScopes, type ScopeState, scopeStates } from "../../store/catalog/scopes.ts";
import { type Difference, openBuckets, unresolvedDifferences } from "../../store/reconcile/differences.ts";
import { type RunResult, runInline } from "../extract/run-inline.ts";
import type { OpenSource } from "../source/source.ts";
import { compareSlices, type HeldSlices } from "./compare-exports.ts";

export interface ReconcileRequest {
  readonly range: Interval;
  readonly stride: Stride;
  readonly groupings?: readonly GroupBy[] | undefined;
  readonly repair: boolean;
}

type Progress = (progress: { done: number; total: number }) => void;

export interface ReconcileResult extends Omit<HeldSlices, "repaired"> {
  /** Left at the end in the time that was asked for, the first thousand of them. */
  readonly differences: readonly Difference[];
  /** How many are left: to be fetched again, and those on which the platform's two answers differ. */
  readonly open: number;
  readonly platformDisagrees: number;
  /** What a repair fetched again; undefined where nothing was to repair. */
  readonly repaired?: {
    /** Differences that were asked about again, and those of them that are gone by it. */
    readonly differences: number;
    readonly mended: number;
    readonly run: RunResult;
  };
}

/** Differences that a result names; all of them are in reporting.usage_reconciliation. */
const MOST_NAMED = 1000;

/**
 * Holds what is stored against the platform's CSV export, settled buckets only. With `repair`, the JSON and then the export of
 * what differs are asked for again, in the fewest windows that cover it: what was stale is replaced, and where the platform's two
 * answers differ still, the JSON stays and the difference is kept as such.
 */
export async function reconcile(
  source: OpenSource,
  request: ReconcileRequest,
  onProgress: Progress = () => {},
): Promise<ReconcileResult> {
  const { stride, repair } = request;
  const states = await statesOf(source, stride, request.groupings ?? GROUPINGS);
  const range = alignRange(request.range, stride, source.dataStart);
  return reconcileParts(
    source,
    { states, stride, repair, partsOf: () => (range === undefined ? [] : [range]) },
    onProgress,
  );
}

/** The scopes of a stride that this source reads, with what is known of their time. */
export async function statesOf(
  source: OpenSource,
  stride: Stride,
  groupings: readonly GroupBy[],
): Promise<ScopeState[]> {
  const { sourceId, store } = source;
  await ensureScopes(store.db, { sourceId, groupings, strides: [stride] });
  const all = await scopeStates(store.db, { sourceId, groupings, strides: [stride] });
  const ids = new Set(source.workspaces.map((w) => w.workspaceId));
  return all.filter((state) => ids.has(state.workspaceId));
}

interface Parts {
  readonly states: readonly ScopeState[];
  readonly stride: Stride;
  readonly repair: boolean;
  /** The time to be held against the export; what of it is not settled is left out. */
  readonly partsOf: (state: ScopeState) => readonly Interval[];
}

/** The one way in which anything is reconciled, by hand or by schedule. */
export async function reconcileParts(
  source: OpenSource,
  { states, stride, repair, partsOf }: Parts,
  onProgress: Progress = () => {},
): Promise<ReconcileResult> {
  const settled = new Map(
    states.map((state) => [
      state.scopeId,
      intersect(
        state.coverage.filter((fragment) => fragment.settled),
        [...partsOf(state)],
      ),
    ]),
  );
  const range = spanOf([...settled.values()].flat());
  const slices = slicesOver(source, states, stride, (state) => settled.get(state.scopeId) ?? []);
  const first = await compareSlices(source, slices, onProgress);
  const scopeIds = states.map((state) => state.scopeId);
  const repaired = repair ? await repairOpen(source, { states, stride, settled, range }) : undefined;
  const left = await unresolvedDifferences(source.store.db, { scopeIds, range, most: MOST_NAMED });
  const { repaired: _, ...held } = first;
  const result = {
    ...held,
    differences: left.first,
    open: left.open,
    platformDisagrees: left.platformDisagrees,
  };
  if (repaired === undefined) return result;
  const { held: again, differences, run } = repaired;
  return {
    ...result,
    requests: held.requests + again.requests,
    failures: [...held.failures, ...again.failures],
    unverified: held.unverified + again.unverified,
    moved: held.moved + again.moved,
    repaired: { differences, mended: again.repaired, run },
  };
}

/** Asks again about every open difference of this time: the JSON, then the export. Undefined where there is none. */
async function repairOpen(
  source: OpenSource,
  asked: {
    states: readonly ScopeState[];
    stride: Stride;
    settled: ReadonlyMap<number, readonly Interval[]>;
    range: Interval;
  },
): Promise<{ differences: number; run: RunResult; held: HeldSlices } | undefined> {
  const { states, stride, settled, range } = asked;
  const scopeIds = states.map((state) => state.scopeId);
  const open = Map.groupBy(await openBuckets(source.store.db, { scopeIds, range }), (one) => one.scopeId);
  const scopes = states.flatMap((state): CoveredScope[] => {
    const buckets = open.get(state.scopeId)?.map(({ bucketStart }) => bucketStart) ?? [];
    if (buckets.length === 0) return [];
    return [{ ...state, buckets, within: normalize(settled.get(state.scopeId) ?? []) }];
  });
  const again = coverSlices(scopes, stride);
  if (again.length === 0) return undefined;
  const run = await runInline(source, again);
  const held = await compareSlices(source, again, () => {});
  const differences = [...open.values()].flat().reduce((sum, one) => sum + one.differences, 0);
  return { differences, run, held };
}

/** Windows of this stride alone over parts of time of each scope. */
function slicesOver(
  source: OpenSource,
  states: readonly ScopeState[],
  stride: Stride,
  partsOf: (state: ScopeState) => readonly Interval[],
): Slice[] {
  const range = spanOf(states.flatMap((state) => [...partsOf(state)]));
  const scopes: KnownScope[] = states.map((state) => ({
    ...state,
    done: subtract([range], [...partsOf(state)]),
  }));
  return planSlices({ scopes, wanted: [{ stride, range }], dataStart: source.dataStart });
}

function spanOf(parts: readonly Interval[]): Interval {
  const all = normalize(parts);
  return { start: all[0]?.start ?? 0, end: all.at(-1)?.end ?? 0 };
}
