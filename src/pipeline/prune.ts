import { compactCoverage } from "../store/compact.ts";
import type { Store } from "../store/database.ts";
import { pruneFetches, pruneSlices } from "../store/prune.ts";

/** No answer is on its way for so long: settled coverage older than this is joined into few fragments. */
const COMPACT_AFTER_DAYS = 7;

/** Keeps the ledgers bounded: requests and finished backfill slices older than so many days go. Figures are untouched. */
export async function pruneLedgers(
  store: Store,
  { sourceId, keepDays }: { sourceId: number; keepDays: number },
): Promise<{ fetches: number; slices: number; fragments: number }> {
  return {
    fragments: await compactCoverage(store, { sourceId, olderThanDays: COMPACT_AFTER_DAYS }),
    fetches: await pruneFetches(store.db, { sourceId, keepDays }),
    slices: await pruneSlices(store.db, { sourceId, keepDays }),
  };
}
