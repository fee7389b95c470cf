import type { Slice } from "../../domain/planning/slice.ts";
import { PlatformError } from "../../errors.ts";
import { beginFetch, finishFetch } from "../../store/load/fetch-ledger.ts";
import { type Comparison, compareExport } from "../../store/reconcile/compare-export.ts";
import { sequentially } from "../extract/sequentially.ts";
import { withRetries } from "../source/retry.ts";
import type { OpenSource } from "../source/source.ts";

/** What holding slices against their exports came to. */
export interface HeldSlices {
  readonly windows: number;
  readonly requests: number;
  /** Distinct keys held against each other. */
  readonly compared: number;
  /** Differences that are gone since their windows were fetched again. */
  readonly repaired: number;
  readonly failures: readonly { slice: Slice; code: string; message: string }[];
  /** Windows of a workspace that nothing shows to be readable, or that moved on while they were asked for: not compared. */
  readonly unverified: number;
  readonly moved: number;
}

/** Asks for the export of each slice and holds it against the store, one after another: one export is kept at a time. */
export async function compareSlices(
  source: OpenSource,
  slices: readonly Slice[],
  onProgress: (progress: { done: number; total: number }) => void,
): Promise<HeldSlices> {
  let [requests, compared, repaired, unverified, moved] = [0, 0, 0, 0, 0];
  const work = async (slice: Slice) => {
    let comparison = await compareSlice(source, slice, () => requests++);
    // A load that came between the export and the comparison: what it stored is newer, so the export is asked for anew.
    if (comparison.outcome === "outdated") comparison = await compareSlice(source, slice, () => requests++);
    compared += comparison.compared;
    repaired += comparison.repaired;
    unverified += comparison.unverified.length;
    // Twice in a row, or no longer settled: the next pass looks again.
    moved += comparison.outcome === "outdated" ? slice.scopeIds.length : comparison.unsettled.length;
  };
  const failed = await sequentially(source, slices, { work, onProgress });
  const failures = failed.map(({ one, ...reason }) => ({ slice: one, ...reason }));
  return { windows: slices.length, requests, compared, repaired, failures, unverified, moved };
}

async function compareSlice(source: OpenSource, slice: Slice, count: () => void): Promise<Comparison> {
  const { groupBy, window, workspaceIds, scopeIds } = slice;
  const { store, sourceId } = source;
  return withRetries(source, async () => {
    await source.admit();
    source.signal?.throwIfAborted();
    const stamp = await beginFetch(store.db, {
      sourceId,
      purpose: "reconcile",
      groupBy,
      window,
      workspaces: workspaceIds.length,
    });
    count();
    try {
      const exported = await source.billing.exportCsv(
        { start: window.start, end: window.end, groupBy, workspaceIds },
        { signal: source.signal },
      );
      const { whole } = exported;
      // An address that is not kept is not looked at either.
      const withNames = groupBy !== "user" || source.settings.userEmail === "keep";
      const comparison = await exported
        .read((rows) =>
          compareExport(store, {
            sourceId,
            groupBy,
            window,
            workspaceIds,
            scopeIds,
            stamp,
            whole,
            withNames,
            rows,
          }),
        )
        .finally(() => exported.close());
      const { rows: records, traces } = comparison;
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
