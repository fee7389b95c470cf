import { sql } from "kysely";
import type { FetchToken } from "../../domain/coverage/finality.ts";
import { splitByAccess } from "../access/workspace-access.ts";
import { overlaps } from "../catalog/scope-time.ts";
import { lockScopes } from "../catalog/scopes.ts";
import { keepProof, markReconciled } from "../coverage/proved-time.ts";
import type { Store } from "../db/database.ts";
import { type Database, query } from "../db/query.ts";
import { type StagedExport, stageExport } from "./export-stage.ts";
import { findDifferences } from "./find-differences.ts";
import { keepDifferences } from "./write-differences.ts";

export interface ExportedWindow extends StagedExport {
  readonly fetchToken: FetchToken;
  /** False if nothing proves the end of the export. Then no row counts as missing from it. */
  readonly whole: boolean;
}

export interface Comparison {
  readonly outcome: "compared" | "outdated";
  readonly compared: number;
  readonly rows: number;
  readonly traces: number;
  readonly unverified: readonly number[];
  readonly notFinal: readonly number[];
}

/**
 * Compares the final stored records of a window with its export, by key, in one transaction. Stores each difference, closes those
 * that are not found again, and marks time without differences as reconciled. Throws `ExportError` and errors of reading the
 * export, without any change.
 */
export async function compareExport(store: Store, exported: ExportedWindow): Promise<Comparison> {
  return store.transaction(async (transaction) => {
    const { db } = transaction;
    const { window, fetchToken, scopeIds, whole } = exported;
    // The export is read before the locks, so that no load waits for that.
    const stage = await stageExport(transaction, exported);
    const { rows, traces } = stage;
    // Loads of these scopes wait, so that coverage and records show the same moment.
    await lockScopes(db, scopeIds);
    const { isOutdated, isClean, final } = await coverageOf(db, exported);
    if (isOutdated) return { outcome: "outdated", compared: 0, rows, traces, unverified: [], notFinal: [] };
    const { proven, unverified } = await splitByAccess(db, { response: stage, scopeIds, fetchToken });
    const compared = proven.filter((id) => final.has(id));
    const within = { window, fetchToken, scopeIds: compared, whole };
    const { compared: keys, found } = await findDifferences(transaction, { ...within, stage });
    const hasDifferences = found > 0 || !isClean;
    if (hasDifferences) await keepDifferences(transaction, { ...within, isFolded: stage.isFolded });
    // An export whose end is not proven may lack rows, so it reconciles nothing.
    if (whole) await markReconciled(db, { window, fetchToken, scopeIds: compared });
    if (hasDifferences || whole) await keepProof(db, compared);
    return {
      outcome: "compared",
      compared: keys,
      rows,
      traces,
      unverified,
      notFinal: proven.filter((id) => !final.has(id)),
    };
  });
}

/**
 * `isOutdated`: part of the window was loaded after the export was requested. `isClean`: no open difference. `final`: scopes
 * whose window is all final.
 */
async function coverageOf(
  db: Database,
  { scopeIds, window, fetchToken }: ExportedWindow,
): Promise<{ isOutdated: boolean; isClean: boolean; final: Set<number> }> {
  const [from, to] = [window.start, window.end].map((at) => sql`${new Date(at)}::timestamptz`);
  const rows = await query<{ scope_id: number; outdated: boolean; clean: boolean; final: boolean }>(db)`
    select scope_id, bool_or(fetch_number > ${fetchToken.fetchNumber}) as outdated,
           not exists (
             select from usage.difference d
             where d.scope_id = c.scope_id and d.compared_with = 'export' and d.state in ('open', 'platform_disagrees')
               and d.period_start >= ${from} and d.period_start < ${to}
           ) as clean,
           coalesce(sum(least(period_end, ${to}) - greatest(period_start, ${from})) filter (where final), '0')
             = ${to} - ${from} as final
    from usage.coverage c
    where ${overlaps({ scopeIds, period: window })}
    group by scope_id
  `;
  return {
    isClean: rows.every((row) => row.clean),
    isOutdated: rows.some((row) => row.outdated),
    final: new Set(rows.filter((row) => row.final).map((row) => row.scope_id)),
  };
}
