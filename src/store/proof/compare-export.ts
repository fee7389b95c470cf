import { sql } from "kysely";
import type { FetchStamp } from "../../domain/coverage/finality.ts";
import { overlaps } from "../catalog/scope-time.ts";
import { lockScopes } from "../catalog/scopes.ts";
import { splitByAccess } from "../catalog/workspace-access.ts";
import type { Database, Store } from "../db/database.ts";
import { type KeptDifferences, keepDifferences } from "./differences.ts";
import { type StagedExport, stageExport, TooManyKeys } from "./export-stage.ts";
import { findDifferences } from "./find-differences.ts";
import { markReconciled } from "./reconciled.ts";
import { differingBuckets } from "./stored-content.ts";

export interface ExportedWindow extends StagedExport {
  readonly stamp: FetchStamp;
  /** False if nothing proves the end of the export: then no row counts as missing in it. */
  readonly whole: boolean;
}

export interface Comparison extends KeptDifferences {
  /** `outdated`: a newer answer was loaded after the export was requested; request it again. */
  readonly outcome: "compared" | "outdated";
  /** Distinct keys compared, stored and exported. */
  readonly compared: number;
  /** Rows and traces of the export. */
  readonly rows: number;
  readonly traces: number;
  /** Not compared: scopes without rows in the export and without proof of access to their workspace. */
  readonly unverified: readonly number[];
  /** Not compared: scopes whose window is no longer all final. */
  readonly notFinal: readonly number[];
}

const NOTHING = { compared: 0, open: 0, platformDisagrees: 0, repaired: 0, withdrawn: 0, closed: 0 };

/** Hours of the buckets that are compared record by record; undefined: all. */
type Buckets = ReadonlySet<number> | undefined;

/**
 * Reconciles the stored records of a window with its export, in one transaction. Reads every record of both sides: buckets
 * whose content is equal are done, the others are streamed into a temporary table and compared by key in one statement. Stores
 * each difference, closes those that are not found again, and marks time without any as reconciled. Compares final time only.
 *
 * Throws `ExportFlaw` and what reading the export throws; then nothing has changed.
 */
export async function compareExport(store: Store, exported: ExportedWindow): Promise<Comparison> {
  // Of an export that may lack its end, rows decide what is known.
  let buckets: Buckets = exported.whole ? new Set() : undefined;
  for (;;) {
    const comparison = await compareBuckets(store, exported, buckets).catch((error) => {
      if (error instanceof TooManyKeys) return { again: undefined };
      throw error;
    });
    if ("outcome" in comparison) return comparison;
    buckets = comparison.again;
  }
}

/** `again`: nothing is known yet; these buckets have to be compared record by record. */
async function compareBuckets(
  store: Store,
  exported: ExportedWindow,
  buckets: Buckets,
): Promise<Comparison | { again: Buckets }> {
  return store.transaction(async (transaction) => {
    const { db } = transaction;
    const { window, stamp, scopeIds, whole } = exported;
    // Before the locks, so that no load waits while the export is read.
    const stage = await stageExport(transaction, { ...exported, buckets });
    const { rows, traces } = stage;
    // Loads of these scopes wait, so that coverage and records show the same moment.
    await lockScopes(db, scopeIds);
    const { isOutdated, isClean, final } = await coverageOf(db, exported);
    if (isOutdated) return { outcome: "outdated", ...NOTHING, rows, traces, unverified: [], notFinal: [] };
    const { proven, unverified } = await splitByAccess(db, { answer: stage, scopeIds, stamp });
    const compared = proven.filter((id) => final.has(id));
    const within = { window, stamp, scopeIds: compared, whole };
    let equalRecords = 0;
    if (stage.content !== undefined && buckets !== undefined) {
      const { content } = stage;
      const asked = { window, scopeIds, compared, content, staged: buckets };
      const outside = await differingBuckets(transaction, asked);
      // What changed since the first look may change again: then all are compared.
      if (outside.differing.size > 0) return { again: buckets.size === 0 ? outside.differing : undefined };
      equalRecords = outside.equalRecords;
    }
    const isPart = stage.content !== undefined;
    const { compared: keys, found } = await findDifferences(transaction, {
      ...within,
      ...{ stage, buckets: isPart ? buckets : undefined },
    });
    const kept =
      found === 0 && isClean
        ? NOTHING
        : await keepDifferences(transaction, { ...within, isFolded: stage.isFolded });
    // An export whose end is not proven may lack rows, so it reconciles nothing.
    if (whole) await markReconciled(db, { window, stamp, scopeIds: compared });
    return {
      outcome: "compared",
      ...kept,
      compared: equalRecords + keys,
      rows,
      traces,
      unverified,
      notFinal: proven.filter((id) => !final.has(id)),
    };
  });
}

/**
 * `isOutdated`: something in the window was loaded after the export was requested. `isClean`: no difference is open in it.
 * `final`: scopes for which all of it is final.
 */
async function coverageOf(
  db: Database,
  { scopeIds, window, stamp }: ExportedWindow,
): Promise<{ isOutdated: boolean; isClean: boolean; final: Set<number> }> {
  const [from, to] = [window.start, window.end].map((at) => sql`${new Date(at)}::timestamptz`);
  const { rows } = await sql<{ scope_id: number; outdated: boolean; clean: boolean; final: boolean }>`
    select scope_id, bool_or(fetch_number > ${stamp.fetchNumber}) as outdated,
           not exists (
             select from usage.reconciliation_difference d
             where d.scope_id = c.scope_id and d.state in ('open', 'platform_disagrees')
               and d.bucket_start >= ${from} and d.bucket_start < ${to}
           ) as clean,
           coalesce(sum(least(period_end, ${to}) - greatest(period_start, ${from})) filter (where final), '0')
             = ${to} - ${from} as final
    from usage.coverage c
    where ${overlaps({ scopeIds, period: window })}
    group by scope_id
  `.execute(db);
  return {
    isClean: rows.every((row) => row.clean),
    isOutdated: rows.some((row) => row.outdated),
    final: new Set(rows.filter((row) => row.final).map((row) => row.scope_id)),
  };
}
