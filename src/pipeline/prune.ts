import type { EmailPolicy } from "../config/config.ts";
import type { Store } from "../store/db/database.ts";
import { healSettlement, pruneHistory } from "../store/load/restatements.ts";
import { compactCoverage } from "../store/retention/compact.ts";
import { dropOldHours } from "../store/retention/hourly-keep.ts";
import { forgetUserNames, pruneFetches, pruneSlices } from "../store/retention/prune.ts";

/** No answer is on its way for so long: settled coverage older than this is joined into few fragments. */
const COMPACT_AFTER_DAYS = 7;

type Pruned = {
  readonly fetches: number;
  readonly slices: number;
  readonly fragments: number;
  readonly restatements: number;
  readonly userNames: number;
  readonly hours: number;
};

interface Retention {
  readonly sourceId: number;
  readonly keepDays: number;
  /** Undefined: for good. */
  readonly keepHours?: number | undefined;
  readonly userEmail: EmailPolicy;
}

/**
 * Keeps the ledgers bounded: requests, finished backfill slices and restatements older than so many days go, and
 * addresses of users that `USAGE_USER_EMAIL` no longer lets in. Hours go where their day is loaded. No figure of a day
 * changes.
 */
export async function pruneLedgers(
  store: Store,
  { sourceId, keepDays, keepHours, userEmail }: Retention,
): Promise<Pruned> {
  await healSettlement(store.db, sourceId);
  return {
    userNames:
      userEmail === "keep"
        ? 0
        : await forgetUserNames(store.db, { sourceId, keepDigests: userEmail === "hash" }),
    fragments: await compactCoverage(store, { sourceId, olderThanDays: COMPACT_AFTER_DAYS }),
    fetches: await pruneFetches(store.db, { sourceId, keepDays }),
    slices: await pruneSlices(store.db, { sourceId, keepDays }),
    restatements: (await pruneHistory(store, { sourceId, keepDays })).restatements,
    hours: keepHours === undefined ? 0 : await dropOldHours(store, { sourceId, keepHours }),
  };
}
