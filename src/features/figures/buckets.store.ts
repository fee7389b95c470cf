import { sql } from "kysely";
import { iso } from "../../core/store/db/expressions.ts";
import { type Database, query, queryValues } from "../../core/store/db/query.ts";
import {
  cellsOf,
  isCounted,
  midnight,
  monthOf,
  recordsIn,
  type UsageOf,
  type UsageRange,
} from "../../core/store/figures/records.ts";

export interface BucketSum {
  /** First day of a day or month, `2026-03-01`; start of an hour, `2026-03-01T05:00:00Z`. */
  readonly bucket: string;
  readonly traces: number;
}

export async function bucketTotals(db: Database, of: UsageOf, range: UsageRange): Promise<BucketSum[]> {
  return query<BucketSum>(db)`
    with ${cellsOf(of)}
    select ${bucketText(range)} as bucket, p.traces
    from (select bucket, sum(traces)::bigint as traces from (${recordsIn(of, range)}) r group by bucket) p
    order by 1
  `;
}

export async function bucketsOfIds(
  db: Database,
  of: UsageOf,
  { range, keys }: { range: UsageRange; keys: readonly number[] },
): Promise<(BucketSum & { readonly key: number })[]> {
  return query<BucketSum & { key: number }>(db)`
    with ${cellsOf(of)}
    select p.key, ${bucketText(range)} as bucket, p.traces
    from (
      select key, bucket, sum(traces)::bigint as traces from (${recordsIn(of, range, keys)}) r
      where key = any (${keys}::integer[]) group by key, bucket
    ) p
    order by 1, 2
  `;
}

export async function restatedBuckets(db: Database, of: UsageOf, range: UsageRange): Promise<string[]> {
  const { per, from, to } = range;
  const at = per === "hour" ? sql`t.bucket_start` : sql`(t.bucket_start at time zone 'UTC')::date`;
  return queryValues<string>(db)`
    with ${cellsOf(of)}
    select ${bucketText(range)} as bucket
    from (
      select distinct ${per === "month" ? monthOf(at) : at} as bucket
      from cell c
      join usage.series s on s.scope_id = ${per === "hour" ? sql`c.hour_scope_id` : sql`c.day_scope_id`}
      join usage.restatement t using (series_id)
      where t.bucket_start >= ${midnight(from)} and t.bucket_start < ${midnight(to)} and ${isCounted(of)}
    ) p
    order by 1
  `;
}

function bucketText({ per }: UsageRange) {
  return per === "hour" ? sql`${iso("p.bucket")}` : sql`to_char(p.bucket, 'YYYY-MM-DD')`;
}

/** Names of the workspaces in which projects had usage, by the project's id. A project may be in several. */
export async function workspacesOfIds(
  db: Database,
  { sourceId, ids }: { sourceId: number; ids: readonly string[] },
): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map();
  const rows = await query<{ id: string; names: string }>(db)`
    select e.external_id as id,
           string_agg(distinct coalesce(w.dimension_name, w.dimension_id), ', ' order by coalesce(w.dimension_name, w.dimension_id)) as names
    from usage.trace_scope c
    join usage.labelled_entity w on w.entity_id = c.workspace_id
    join usage.series x using (scope_id)
    join usage.entity e on e.entity_id = x.entity_id
    where c.source_id = ${sourceId} and c.group_by = 'project' and c.stride = 'day' and e.external_id = any (${[...ids]}::text[])
    group by 1
  `;
  return new Map(rows.map(({ id, names }) => [id, names]));
}
