import { AnswerCollector } from "../domain/answer.ts";
import { intersect, subtract } from "../domain/intervals.ts";
import { alignRange } from "../domain/plan.ts";
import { GROUPINGS, type GroupBy } from "../domain/record.ts";
import { type KnownScope, planSlices, type Slice } from "../domain/slice.ts";
import { DAY_MS, STRIDE_MS, type Stride } from "../domain/stride.ts";
import type { Interval } from "../domain/window.ts";
import { PlatformError } from "../errors.ts";
import { beginFetch, finishFetch, storeNow } from "../store/fetches.ts";
import { type Comparison, compareExport, type Difference } from "../store/reconcile.ts";
import { ensureScopes, type ScopeState, scopeStates } from "../store/scopes.ts";
import { GIVE_UP_AFTER, platformUnreachable, type RunResult, runInline } from "./inline.ts";
import { withRetries } from "./retry.ts";
import { isKeyRefused, keepRefusal, type OpenSource } from "./source.ts";

export interface ReconcileRequest {
  readonly range: Interval;
  readonly stride: Stride;
  readonly groupings?: readonly GroupBy[] | undefined;
  readonly repair: boolean;
}

/** A difference with the words that a reader needs. */
interface NamedDifference extends Difference {
  readonly groupBy: GroupBy;
  readonly stride: Stride;
  readonly workspaceId: string;
}

export interface ReconcileResult {
  readonly windows: number;
  readonly requests: number;
  /** Distinct keys held against each other. */
  readonly compared: number;
  /** Those still open at the end. */
  readonly differences: readonly NamedDifference[];
  /** What a repair fetched again; undefined where nothing was to repair. */
  readonly repaired?: { readonly differences: number; readonly run: RunResult };
  readonly failures: readonly { slice: Slice; code: string; message: string }[];
  readonly unverified: number;
}

/**
 * Holds what is stored against the platform's CSV export, settled buckets only. With `repair`, the windows that hold a
 * difference are fetched again, in the fewest that cover it, and held against the export once more.
 */
export async function reconcile(
  source: OpenSource,
  request: ReconcileRequest,
  onProgress: (progress: { done: number; total: number }) => void = () => {},
): Promise<ReconcileResult> {
  const { stride, range } = request;
  const groupings = request.groupings ?? GROUPINGS;
  const { sourceId, store } = source;
  await ensureScopes(store.db, { sourceId, groupings, strides: [stride] });
  const all = await scopeStates(store.db, { sourceId, groupings, strides: [stride] });
  const ids = new Set(source.workspaces.map((w) => w.workspaceId));
  const states = all.filter((state) => ids.has(state.workspaceId));
  const slices = slicesOver(source, states, { range, stride }, (state) =>
    state.coverage.filter((fragment) => fragment.settled),
  );
  const first = await compareAll(source, slices, onProgress);
  const named = nameDifferences(states, first.differences);
  if (!request.repair || named.length === 0) return { ...first, differences: named };

  const again = slicesOver(source, states, { range, stride }, (state) =>
    named
      .filter((difference) => difference.scopeId === state.scopeId)
      .map(({ bucketStart }) => ({ start: bucketStart, end: bucketStart + STRIDE_MS[stride] })),
  );
  const run = await runInline(source, again);
  const second = await compareAll(source, again, () => {});
  return {
    windows: first.windows,
    requests: first.requests + second.requests,
    compared: first.compared,
    differences: nameDifferences(states, second.differences),
    repaired: { differences: named.length, run },
    failures: [...first.failures, ...second.failures],
    unverified: first.unverified + second.unverified,
  };
}

/** The scheduled pass: the days of so many days up to now, all groupings, nothing repaired. */
export async function reconcileLately(source: OpenSource, days: number): Promise<ReconcileResult> {
  const now = await storeNow(source.store.db);
  return reconcile(source, { range: { start: now - days * DAY_MS, end: now }, stride: "day", repair: false });
}

/** Windows of this stride alone over parts of time of each scope. */
function slicesOver(
  source: OpenSource,
  states: readonly ScopeState[],
  wanted: { range: Interval; stride: Stride },
  partsOf: (state: ScopeState) => Interval[],
): Slice[] {
  const range = alignRange(wanted.range, wanted.stride, source.dataStart);
  if (range === undefined) return [];
  const scopes: KnownScope[] = states.map((state) => ({
    ...state,
    done: subtract([range], intersect(partsOf(state), [range])),
  }));
  return planSlices({ scopes, wanted: [{ stride: wanted.stride, range }], dataStart: source.dataStart });
}

type Compared = Pick<ReconcileResult, "windows" | "requests" | "compared" | "failures" | "unverified"> & {
  readonly differences: readonly Difference[];
};

async function compareAll(
  source: OpenSource,
  slices: readonly Slice[],
  onProgress: (progress: { done: number; total: number }) => void,
): Promise<Compared> {
  let [requests, compared, unverified, done, gaveUpInARow] = [0, 0, 0, 0, 0];
  const differences: Difference[] = [];
  const failures: { slice: Slice; code: string; message: string }[] = [];
  for (const slice of slices) {
    await source.evidence.fresh();
    try {
      let comparison = await compareSlice(source, slice, () => requests++);
      // A load that came between the export and the comparison: what it stored is newer, so the export is asked for anew.
      if (comparison.outcome === "outdated") comparison = await compareSlice(source, slice, () => requests++);
      compared += comparison.compared;
      unverified += comparison.unverified.length;
      differences.push(...comparison.differences);
      gaveUpInARow = 0;
    } catch (error) {
      if (!(error instanceof PlatformError)) throw error;
      if (isKeyRefused(error)) {
        await keepRefusal(source, source.sourceId, error);
        throw error;
      }
      failures.push({ slice, code: error.code, message: error.message });
      gaveUpInARow = error.retryable ? gaveUpInARow + 1 : 0;
      if (gaveUpInARow >= GIVE_UP_AFTER) throw platformUnreachable(error);
    }
    onProgress({ done: ++done, total: slices.length });
  }
  return { windows: slices.length, requests, compared, differences, failures, unverified };
}

async function compareSlice(source: OpenSource, slice: Slice, count: () => void): Promise<Comparison> {
  const { groupBy, window, workspaceIds, scopeIds } = slice;
  const { store } = source;
  return withRetries(source, async () => {
    await source.admit();
    const stamp = await beginFetch(store.db, {
      sourceId: source.sourceId,
      purpose: "reconcile",
      groupBy,
      window,
      workspaces: workspaceIds.length,
    });
    count();
    const answer = new AnswerCollector({ window, groupBy, workspaceIds });
    try {
      const { whole } = await source.billing.exportCsv(
        { start: window.start, end: window.end, groupBy, workspaceIds },
        { signal: source.signal, onRows: (rows) => answer.add(rows) },
      );
      const flaw = answer.flaw(window.stride);
      if (flaw !== undefined) throw exportRefused(source, flaw);
      const comparison = await compareExport(store, { window, stamp, scopeIds, answer, whole });
      const { records, traces } = answer;
      await finishFetch(store.db, { ...stamp, outcome: "compared", records, traces });
      return comparison;
    } catch (error) {
      if (error instanceof PlatformError) {
        await finishFetch(store.db, { ...stamp, outcome: "failed", code: error.code, status: error.status });
      }
      throw error;
    }
  });
}

function exportRefused(source: OpenSource, flaw: { code: string; message: string }): PlatformError {
  return new PlatformError({
    code: flaw.code,
    method: "GET",
    url: source.config.baseUrl,
    message: `The CSV export cannot be compared: ${flaw.message}.`,
    next: "Nothing was compared or changed. `usage-etl doctor` shows what the server was seen to answer.",
  });
}

function nameDifferences(states: readonly ScopeState[], found: readonly Difference[]): NamedDifference[] {
  const byId = new Map(states.map((state) => [state.scopeId, state]));
  return found.map((difference) => {
    const { groupBy, stride, workspaceId } = byId.get(difference.scopeId) as ScopeState;
    return { ...difference, groupBy, stride, workspaceId };
  });
}
