import { HOUR_MS } from "../../domain/time/stride.ts";
import type { Window } from "../../domain/time/window.ts";
import type { ExportContent } from "../../domain/usage/export-content.ts";
import type { Transaction } from "../db/database.ts";
import { tablesOf } from "./export-stage.ts";

interface Asked {
  readonly window: Window;
  /** Scope of each workspace, by its index; only those of `compared` are compared. */
  readonly scopeIds: readonly number[];
  readonly compared: readonly number[];
  readonly content: ExportContent;
  /** Hours of buckets that are compared record by record. */
  readonly staged: ReadonlySet<number>;
}

/**
 * Reads every stored record of the window and adds each bucket and scope up to what `ExportContent` keeps of the export. The digests
 * of coverage are not asked: a reconciliation proves what is in the tables, whoever wrote it there.
 *
 * Returns the hours of the buckets that are not equal, and how many records are stored in all buckets that are not staged.
 */
export async function differingBuckets(
  { client }: Transaction,
  { window, scopeIds, compared, content, staged }: Asked,
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
    // The seed of a series is computed once, not for each of its records.
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
  // What is stored off the grid is in no bucket of the export.
  for (const { seconds } of found.values()) {
    const hour = seconds / (HOUR_MS / 1000);
    if (!staged.has(hour)) differing.add(hour);
  }
  return { differing, equalRecords };
}
