import { sql } from "kysely";
import type { FetchToken } from "../../domain/coverage/finality.ts";
import { HOUR_MS } from "../../domain/time/stride.ts";
import type { Window } from "../../domain/time/window.ts";
import type { ExportContent } from "../../domain/usage/export-content.ts";
import { splitByAccess } from "../access/workspace-access.ts";
import { overlaps } from "../catalog/scope-time.ts";
import { lockScopes } from "../catalog/scopes.ts";
import { keepProof, markReconciled } from "../coverage/proved-time.ts";
import type { Store, Transaction } from "../db/database.ts";
import { type Database, query } from "../db/query.ts";
import { type StagedExport, stageExport, TooManyKeys, tablesOf } from "./export-stage.ts";
import { findDifferences } from "./find-differences.ts";
import { keepDifferences } from "./write-differences.ts";

export interface ExportedWindow extends StagedExport {
  readonly fetchToken: FetchToken;
  /** False if nothing proves the end of the export. Then no row counts as missing from it. */
  readonly whole: boolean;
}

export interface Comparison {
  readonly outcome: "compared" | "outdated";
  /** Number of distinct keys, stored or exported. */
  readonly compared: number;
  readonly rows: number;
  readonly traces: number;
  /** Scopes without rows in the export and without proof of access to their workspace. */
  readonly unverified: readonly number[];
  /** Scopes whose window is no longer all final. */
  readonly notFinal: readonly number[];
}

type Buckets = ReadonlySet<number> | undefined;

/**
 * Compares the final stored records of a window with its export, in one transaction. Buckets with equal content are done; the
 * others are streamed into a temporary table and compared by key in one statement. Stores each difference, closes those that
 * are not found again, and marks time without differences as reconciled. Throws `ExportError` and errors of reading the export,
 * without any change.
 */
export async function compareExport(store: Store, exported: ExportedWindow): Promise<Comparison> {
  // If the export may lack its end, no bucket is known to be complete, so all rows are compared by key.
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

/** `again`: buckets that must be compared record by record first. */
async function compareBuckets(
  store: Store,
  exported: ExportedWindow,
  buckets: Buckets,
): Promise<Comparison | { again: Buckets }> {
  return store.transaction(async (transaction) => {
    const { db } = transaction;
    const { window, fetchToken, scopeIds, whole } = exported;
    // The export is read before the locks, so that no load waits for that.
    const stage = await stageExport(transaction, { ...exported, buckets });
    const { rows, traces } = stage;
    // Loads of these scopes wait, so that coverage and records show the same moment.
    await lockScopes(db, scopeIds);
    const { isOutdated, isClean, final } = await coverageOf(db, exported);
    if (isOutdated) return { outcome: "outdated", compared: 0, rows, traces, unverified: [], notFinal: [] };
    const { proven, unverified } = await splitByAccess(db, { response: stage, scopeIds, fetchToken });
    const compared = proven.filter((id) => final.has(id));
    const within = { window, fetchToken, scopeIds: compared, whole };
    let equalRecords = 0;
    if (stage.content !== undefined && buckets !== undefined) {
      const { content } = stage;
      const requested = { window, scopeIds, compared, content, staged: buckets };
      const outside = await differingBuckets(transaction, requested);
      // Buckets that changed since the first comparison may change again, so the third one takes all buckets.
      if (outside.differing.size > 0) return { again: buckets.size === 0 ? outside.differing : undefined };
      equalRecords = outside.equalRecords;
    }
    const isPart = stage.content !== undefined;
    const { compared: keys, found } = await findDifferences(transaction, {
      ...within,
      stage,
      buckets: isPart ? buckets : undefined,
    });
    const hasDifferences = found > 0 || !isClean;
    if (hasDifferences) await keepDifferences(transaction, { ...within, isFolded: stage.isFolded });
    // An export whose end is not proven may lack rows, so it reconciles nothing.
    if (whole) await markReconciled(db, { window, fetchToken, scopeIds: compared });
    if (hasDifferences || whole) await keepProof(db, compared);
    return {
      outcome: "compared",
      compared: equalRecords + keys,
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

interface Requested {
  readonly window: Window;
  /** Scope of each workspace, by its index. Only the scopes in `compared` are compared. */
  readonly scopeIds: readonly number[];
  readonly compared: readonly number[];
  readonly content: ExportContent;
  readonly staged: ReadonlySet<number>;
}

/**
 * Computes the content of stored records, by bucket and scope, as `ExportContent` does. Digests of coverage are not used,
 * because a reconciliation proves the tables. Returns the hours of the unequal buckets, and the number of stored records in the
 * buckets that are not staged.
 */
async function differingBuckets(
  { client }: Transaction,
  { window, scopeIds, compared, content, staged }: Requested,
): Promise<{ differing: Set<number>; equalRecords: number }> {
  const { records, bucket, instant } = tablesOf(window.stride);
  const { rows } = await client.query<{
    scope_id: number;
    seconds: number;
    stored: number;
    records: number;
    traces: string;
    hash: string;
  }>(
    // The seed of a series is computed once, not for each record.
    `WITH kept AS MATERIALIZED (
       SELECT s.series_id, s.scope_id,
              ('x' || encode(substring(sha256(convert_to(e.external_id || E'\n' || s.measure, 'UTF8')) FOR 8), 'hex'))::bit(64)::bigint AS seed
       FROM usage.series s JOIN usage.entity e USING (entity_id)
       WHERE s.scope_id = ANY ($1::integer[])
     ), content AS (
       SELECT k.scope_id, r.bucket_start, count(*) AS stored, count(*) FILTER (WHERE r.traces <> 0) AS records,
              sum(r.traces) AS traces, bit_xor(hashint8extended(r.traces, k.seed)) FILTER (WHERE r.traces <> 0) AS hash
       FROM kept k JOIN ${records} r USING (series_id)
       WHERE r.bucket_start >= ${bucket("$2")} AND r.bucket_start < ${bucket("$3")}
       GROUP BY k.scope_id, r.bucket_start
     )
     SELECT scope_id, extract(epoch FROM ${instant("r.bucket_start")})::bigint AS seconds, stored, records, traces::text AS traces,
            coalesce(hash, 0)::text AS hash
     FROM content r`,
    [compared, new Date(window.start).toISOString(), new Date(window.end).toISOString()],
  );
  const found = new Map(rows.map((row) => [`${row.scope_id} ${row.seconds}`, row]));
  const differing = new Set<number>();
  let equalRecords = 0;
  for (const scopeId of compared) {
    const workspace = scopeIds.indexOf(scopeId);
    for (const hour of content.hours()) {
      const key = `${scopeId} ${hour * (HOUR_MS / 1000)}`;
      const stored = found.get(key);
      found.delete(key);
      if (staged.has(hour)) continue;
      equalRecords += stored?.stored ?? 0;
      const exported = content.of(workspace, hour);
      const isEqual =
        exported !== undefined &&
        exported.records === (stored?.records ?? 0) &&
        String(exported.traces) === (stored?.traces ?? "0") &&
        String(exported.hash) === (stored?.hash ?? "0");
      if (!isEqual) differing.add(hour);
    }
  }
  for (const { seconds } of found.values()) {
    const hour = seconds / (HOUR_MS / 1000);
    if (!staged.has(hour)) differing.add(hour);
  }
  return { differing, equalRecords };
}
