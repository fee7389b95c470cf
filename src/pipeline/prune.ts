import type { EmailPolicy } from "../config.ts";
import { compactCoverage } from "../store/compact.ts";
import type { Store } from "../store/database.ts";
import { forgetUserNames, pruneFetches, pruneSlices } from "../store/prune.ts";

/** No answer is on its way for so long: settled coverage older than this is joined into few fragments. */
const COMPACT_AFTER_DAYS = 7;

/**
 * Keeps the ledgers bounded: requests and finished backfill slices older than so many days go, and
 * addresses of users that `USAGE_USER_EMAIL` no longer lets in. Figures are untouched.
 */
export async function pruneLedgers(
  store: Store,
  { sourceId, keepDays, userEmail }: { sourceId: number; keepDays: number; userEmail: EmailPolicy },
): Promise<{ fetches: number; slices: number; fragments: number; userNames: number }> {
  return {
    userNames:
      userEmail === "keep"
        ? 0
        : await forgetUserNames(store.db, { sourceId, keepDigests: userEmail === "hash" }),
    fragments: await compactCoverage(store, { sourceId, olderThanDays: COMPACT_AFTER_DAYS }),
    fetches: await pruneFetches(store.db, { sourceId, keepDays }),
    slices: await pruneSlices(store.db, { sourceId, keepDays }),
  };
}
