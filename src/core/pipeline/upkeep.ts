import type { EmailPolicy } from "../base/config.ts";
import type { Store } from "../store/db/database.ts";
import { analyzeStale } from "../store/db/statistics.ts";
import { endDropped } from "../store/proof/end-differences.ts";
import { compactCoverage } from "../store/retention/compact.ts";
import {
  dropOldHours,
  forgetUserNames,
  pruneFetches,
  pruneHistory,
  pruneTasks,
} from "../store/retention/prune.ts";
import { pruneRuns } from "../store/work/runs.ts";

/** Final loaded intervals older than this are merged, because no response that could change them is still under way. */
const COMPACT_AFTER_DAYS = 7;

interface Retention {
  readonly sourceId: number;
  readonly keepDays: number;
  readonly keepHours?: number | undefined;
  readonly userEmail: EmailPolicy;
}

/**
 * Deletes what the settings no longer keep: runs, requests, finished backfill tasks and restatements older than `keepDays`,
 * user addresses, and old hours whose day is loaded. No figure of a day changes.
 */
export async function pruneLedgers(store: Store, { sourceId, keepDays, keepHours, userEmail }: Retention) {
  await pruneRuns(store.db, { sourceId, keepDays });
  const kept = {
    userNames:
      userEmail === "keep"
        ? 0
        : await forgetUserNames(store.db, { sourceId, keepDigests: userEmail === "hash" }),
    fragments: await compactCoverage(store, { sourceId, olderThanDays: COMPACT_AFTER_DAYS }),
    fetches: await pruneFetches(store.db, { sourceId, keepDays }),
    tasks: await pruneTasks(store.db, { sourceId, keepDays }),
    restatements: await pruneHistory(store, { sourceId, keepDays }),
    hours: keepHours === undefined ? 0 : await dropOldHours(store, { sourceId, keepHours }),
  };
  await endDropped(store.db, sourceId);
  return kept;
}

/** After an installation, reports run before autovacuum does. */
export async function keepStatistics({ db }: Store): Promise<number> {
  return (await analyzeStale(db)).length;
}
