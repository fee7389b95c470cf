import type { Store } from "../store/database.ts";
import { pruneFetches, pruneSlices } from "../store/prune.ts";

/** Keeps the ledgers bounded: requests and finished backfill slices older than so many days go. Figures are untouched. */
export async function pruneLedgers(
  store: Store,
  { sourceId, keepDays }: { sourceId: number; keepDays: number },
): Promise<{ fetches: number; slices: number }> {
  return {
    fetches: await pruneFetches(store.db, { sourceId, keepDays }),
    slices: await pruneSlices(store.db, { sourceId, keepDays }),
  };
}
