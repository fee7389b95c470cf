import { sql } from "kysely";
import type { FetchStamp } from "../../domain/coverage/finality.ts";
import { STRIDES, type Stride } from "../../domain/time/stride.ts";
import type { Interval, Window } from "../../domain/time/window.ts";
import { METERS, type Measure, type Meter } from "../../domain/usage/meter.ts";
import { GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";
import { METER_OF_SCOPE, type Scope } from "../catalog/scopes.ts";
import type { Transaction } from "../db/database.ts";
import { epochMs } from "../db/expressions.ts";
import { type Database, query } from "../db/query.ts";
import { tablesOf } from "./export-stage.ts";

type DifferenceKind =
  | "missing_in_store"
  | "missing_in_export"
  | "traces_differ"
  | "name_differs"
  | "bucket_end_differs";

export interface Difference extends Scope {
  readonly measure: Measure;
  readonly dimensionId: string;
  readonly bucketStart: number;
  readonly kind: DifferenceKind;
  readonly state: "open" | "platform_disagrees";
  readonly storedTraces: number | null;
  readonly exportTraces: number | null;
  readonly exportSays: string | null;
}

/** Whether the bucket was fetched after the export that last showed the difference. */
const FETCHED_SINCE = `EXISTS (
  SELECT FROM usage.coverage c
  WHERE c.scope_id = d.scope_id AND c.period_start <= d.bucket_start AND c.period_end > d.bucket_start
    -- By number and by time: a merged interval has the newest number of its parts, but the oldest time.
    AND c.fetch_number > d.fetch_number AND c.fetched_at >= d.fetched_at)`;

function isChanged(stride: Stride): string {
  const { records, bucket } = tablesOf(stride);
  return `(SELECT coalesce(sum(r.traces), 0) IS DISTINCT FROM coalesce(d.stored_traces, 0)
    OR d.kind = 'name_differs' AND EXISTS (
      SELECT FROM usage.series x JOIN usage.entity e USING (entity_id) JOIN usage.entity_name n USING (entity_id)
      WHERE x.scope_id = d.scope_id AND e.external_id = d.external_id AND n.name = d.export_says)
    FROM usage.series s JOIN usage.entity e USING (entity_id) JOIN ${records} r USING (series_id)
    WHERE s.scope_id = d.scope_id AND e.external_id = d.external_id AND r.bucket_start = ${bucket("d.bucket_start")} AND s.measure = d.measure)`;
}

/**
 * Keeps the differences that were found, and ends those that were not found again. A difference is open until its window is
 * fetched again. If it is gone then, it is `repaired` where the stored figure was changed, else `withdrawn`. If the export
 * repeats its number, JSON and export of the platform contradict each other. No further request repairs that, so the difference
 * is `platform_disagrees` until one of its numbers changes. If the export has a new number, it is still moving, and the
 * difference stays open.
 */
export async function keepDifferences(
  { client }: Transaction,
  given: {
    window: Window;
    stamp: FetchStamp;
    scopeIds: readonly number[];
    whole: boolean;
    isFolded: boolean;
  },
): Promise<void> {
  const { window, stamp, scopeIds, whole, isFolded } = given;
  const { staged, bucket } = tablesOf(window.stride);
  await client.query(
    `UPDATE usage.reconciliation_difference d
     SET closed_at = now(), state = CASE
       WHEN d.state <> 'open' OR NOT ${FETCHED_SINCE} THEN 'closed'
       WHEN ${isChanged(window.stride)} THEN 'repaired' ELSE 'withdrawn' END
     WHERE d.state IN ('open', 'platform_disagrees') AND d.scope_id = ANY ($1::integer[])
       AND d.bucket_start >= $2 AND d.bucket_start < $3 AND d.fetch_number < $4
       AND NOT EXISTS (
         SELECT FROM pg_temp.usage_export_found f
         WHERE f.scope_id = d.scope_id AND f.external_id = d.external_id AND f.bucket_start = d.bucket_start
           AND f.measure = d.measure
       )
       -- If the export may lack its end, only a row that is present shows that a difference is gone, unless a key has several.
       AND ($5 OR NOT $6 AND EXISTS (
         SELECT FROM pg_temp.usage_export_keyed k JOIN ${staged} r ON r.key = k.key
         WHERE k.scope_id = d.scope_id AND k.external_id = d.external_id AND k.measure = d.measure AND r.bucket_start = ${bucket("d.bucket_start")}
       ))`,
    [
      scopeIds,
      new Date(window.start).toISOString(),
      new Date(window.end).toISOString(),
      stamp.fetchNumber,
      whole,
      isFolded,
    ],
  );
  await client.query(
    `INSERT INTO usage.reconciliation_difference AS d
       (scope_id, external_id, bucket_start, measure, kind, stored_traces, export_traces, export_says, fetch_number, fetched_at)
     SELECT f.*, $1, $2 FROM pg_temp.usage_export_found f ORDER BY f.scope_id, f.bucket_start, f.external_id, f.measure
     ON CONFLICT (scope_id, bucket_start, external_id, measure) DO UPDATE
     SET kind = excluded.kind, stored_traces = excluded.stored_traces, export_traces = excluded.export_traces,
         export_says = excluded.export_says, fetch_number = excluded.fetch_number, fetched_at = excluded.fetched_at,
         closed_at = NULL,
         state = CASE
           WHEN (d.export_traces, d.export_says) IS DISTINCT FROM (excluded.export_traces, excluded.export_says) THEN 'open'
           WHEN d.state = 'platform_disagrees' AND d.kind = excluded.kind
             AND d.stored_traces IS NOT DISTINCT FROM excluded.stored_traces THEN 'platform_disagrees'
           WHEN d.state = 'open' AND ${FETCHED_SINCE} THEN 'platform_disagrees'
           ELSE 'open'
         END,
         found_at = CASE WHEN d.state IN ('open', 'platform_disagrees') THEN d.found_at ELSE now() END
     WHERE d.fetch_number < excluded.fetch_number`,
    [stamp.fetchNumber, new Date(stamp.fetchedAt).toISOString()],
  );
}

interface Asked {
  readonly scopeIds: readonly number[];
  readonly range: Interval;
}

/** In order, with the number of differences in each bucket. */
export async function bucketsOf(
  db: Database,
  { scopeIds, range, states }: Asked & { states: readonly Difference["state"][] },
): Promise<{ scopeId: number; bucketStart: number; differences: number }[]> {
  return query<{ scopeId: number; bucketStart: number; differences: number }>(db)`
    select scope_id as "scopeId", ${epochMs("bucket_start")} as "bucketStart",
           count(*) as differences
    from usage.reconciliation_difference
    where state = any (${states}::text[]) and scope_id = any (${scopeIds}::integer[])
      and bucket_start >= ${new Date(range.start)} and bucket_start < ${new Date(range.end)}
    group by scope_id, bucket_start order by scope_id, bucket_start
  `;
}

/** The number of unresolved differences, and the first `most` of them in order of dimension, workspace, time and id. */
export async function unresolvedDifferences(
  db: Database,
  { scopeIds, range, most }: Asked & { most: number },
): Promise<{ open: number; platformDisagrees: number; first: Difference[] }> {
  const unresolved = sql`
    from usage.reconciliation_difference d
    where d.state in ('open', 'platform_disagrees') and d.scope_id = any (${scopeIds}::integer[])
      and d.bucket_start >= ${new Date(range.start)} and d.bucket_start < ${new Date(range.end)}`;
  const counted = await sql<{ state: string; differences: number }>`
    select d.state, count(*) as differences ${unresolved} group by d.state
  `.execute(db);
  const first = await query<Difference>(db)`
    select d.scope_id as "scopeId", ${METER_OF_SCOPE} as meter, d.measure, c.group_by as "groupBy", c.stride,
           w.external_id as "workspaceId", d.external_id as "dimensionId",
           ${epochMs("d.bucket_start")} as "bucketStart", d.kind, d.state,
           d.stored_traces as "storedTraces", d.export_traces as "exportTraces", d.export_says as "exportSays"
    from (select * ${unresolved}) d
    join usage.scope c using (scope_id)
    join usage.entity w on w.entity_id = c.workspace_id
    order by array_position(${GROUPINGS}::text[], c.group_by), w.external_id, d.bucket_start, d.external_id, d.measure
    limit ${most}
  `;
  const count = (state: string) => counted.rows.find((row) => row.state === state)?.differences ?? 0;
  return { open: count("open"), platformDisagrees: count("platform_disagrees"), first };
}

export async function endedSince(
  db: Database,
  { scopeIds, range, since }: Asked & { since: number },
): Promise<{ readonly [state: string]: number }> {
  const rows = await query<{ state: string; differences: number }>(db)`
    select state, count(*) as differences from usage.reconciliation_difference
    where closed_at >= ${new Date(since)} and scope_id = any (${scopeIds}::integer[])
      and bucket_start >= ${new Date(range.start)} and bucket_start < ${new Date(range.end)}
    group by state
  `;
  return Object.fromEntries(rows.map(({ state, differences }) => [state, differences]));
}

/** Stored usage of a range, by meter and then by stride, finest first, with its remaining differences. */
export async function storedStrides(
  db: Database,
  asked: {
    sourceId: number;
    groupings: readonly GroupBy[];
    workspaceIds: readonly string[];
    range: Interval;
  },
): Promise<{ meter: Meter; stride: Stride; differences: number }[]> {
  const [from, to] = [new Date(asked.range.start), new Date(asked.range.end)];
  return query<{ meter: Meter; stride: Stride; differences: number }>(db)`
    select ${METER_OF_SCOPE} as meter, c.stride, sum((
             select count(*) from usage.reconciliation_difference d
             where d.scope_id = c.scope_id and d.closed_at is null and d.bucket_start >= ${from} and d.bucket_start < ${to}
           ))::integer as differences
    from usage.scope c join usage.entity w on w.entity_id = c.workspace_id
    where c.source_id = ${asked.sourceId} and c.group_by = any (${asked.groupings}::text[])
      and ${METER_OF_SCOPE} is not null and w.external_id = any (${asked.workspaceIds}::text[]) and exists (
        select from usage.coverage v
        where v.scope_id = c.scope_id and v.period_start < ${to} and v.period_end > ${from}
      )
    group by 1, 2
    order by array_position(${METERS}::text[], min(${METER_OF_SCOPE})), array_position(${STRIDES}::text[], c.stride)
  `;
}
