import type pg from "pg";
import { expect } from "vitest";
import { HOUR_MS, type Stride } from "../../../src/core/domain/time/stride.ts";
import { WindowDigest } from "../../../src/core/domain/usage/digest.ts";

interface DigestRow {
  readonly scope_id: number;
  readonly stride: Stride;
  readonly start: number;
  readonly end: number;
  readonly digest: string;
  readonly rows: readonly (readonly [seriesId: number, bucketSeconds: number, traces: number])[];
}

/** Every digest of the present epoch is that of the stored records of its interval. Returns how many there are. */
export async function expectTrueDigests(reader: pg.ClientBase): Promise<number> {
  const { rows } = await reader.query<DigestRow>(`
    SELECT c.scope_id, s.stride, extract(epoch FROM c.period_start)::float8 * 1000 AS start,
           extract(epoch FROM c.period_end)::float8 * 1000 AS end, encode(c.digest, 'hex') AS digest,
           coalesce((
             SELECT json_agg(json_build_array(r.series_id, extract(epoch FROM r.bucket_start), r.traces))
             FROM (
               SELECT series_id, bucket_start, traces FROM usage.hourly_record WHERE s.stride = 'hour'
               UNION ALL
               SELECT series_id, bucket_start::timestamp AT TIME ZONE 'UTC', traces FROM usage.dated_record
               WHERE s.stride <> 'hour'
             ) r
             JOIN usage.series x USING (series_id)
             WHERE x.scope_id = c.scope_id AND r.bucket_start >= c.period_start AND r.bucket_start < c.period_end
           ), '[]') AS rows
    FROM usage.coverage c JOIN usage.scope s USING (scope_id)
    WHERE c.digest IS NOT NULL AND c.digest_epoch = (SELECT last_value FROM usage.digest_epoch)`);
  for (const { stride, start, end, digest, rows: records, scope_id } of rows) {
    const stored = new WindowDigest({ stride, start, end });
    for (const [id, seconds, traces] of records)
      stored.add({ id, bucketHour: (seconds * 1000) / HOUR_MS, traces });
    const said = `digest of scope ${scope_id}, ${stride}, ${new Date(start).toISOString()}`;
    if (digest !== stored.of({ start, end })?.toString("hex"))
      expect(digest, said).toBe(stored.of({ start, end })?.toString("hex"));
  }
  return rows.length;
}
