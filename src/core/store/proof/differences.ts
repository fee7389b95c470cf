import { type RawBuilder, sql } from "kysely";
import { STRIDES, type Stride } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { METERS, type Meter } from "../../domain/usage/meter.ts";
import { GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";
import { METER_OF_SCOPE, type Scope } from "../catalog/scopes.ts";
import { epochMs } from "../db/expressions.ts";
import { type Database, query, type Row } from "../db/query.ts";

type StoredDifference = Row<"usage.difference">;

export interface Difference
  extends Scope,
    Pick<StoredDifference, "measure" | "kind" | "storedTraces" | "exportSays"> {
  readonly exportTraces: StoredDifference["otherTraces"];
  readonly dimensionId: string;
  readonly bucketStart: number;
  readonly state: "open" | "platform_disagrees";
}

interface Requested {
  readonly scopeIds: readonly number[];
  readonly range: Interval;
}

function areOf({ scopeIds, range }: Requested): RawBuilder<boolean> {
  return sql<boolean>`d.compared_with = 'export' and d.scope_id = any (${scopeIds}::integer[])
    and d.period_start >= ${new Date(range.start)} and d.period_start < ${new Date(range.end)}`;
}

/** Returns buckets with differences, ordered by scope and time, and the number of differences in each. */
export async function bucketsOf(
  db: Database,
  { scopeIds, range, states }: Requested & { states: readonly Difference["state"][] },
): Promise<{ scopeId: number; bucketStart: number; differences: number }[]> {
  return query<{ scopeId: number; bucketStart: number; differences: number }>(db)`
    select d.scope_id as "scopeId", ${epochMs("d.period_start")} as "bucketStart", count(*) as differences
    from usage.difference d
    where d.state = any (${states}::text[]) and ${areOf({ scopeIds, range })}
    group by d.scope_id, d.period_start order by d.scope_id, d.period_start
  `;
}

/** Returns the number of unresolved differences and the first `most`, ordered by dimension, workspace, time and id. */
export async function unresolvedDifferences(
  db: Database,
  { scopeIds, range, most }: Requested & { most: number },
): Promise<{ open: number; platformDisagrees: number; first: Difference[] }> {
  const unresolved = sql`
    from usage.difference d where d.state in ('open', 'platform_disagrees') and ${areOf({ scopeIds, range })}`;
  const counted = await query<Pick<StoredDifference, "state"> & { differences: number }>(db)`
    select d.state, count(*) as differences ${unresolved} group by d.state
  `;
  const first = await query<Difference>(db)`
    select d.scope_id as "scopeId", ${METER_OF_SCOPE} as meter, d.measure, c.group_by as "groupBy", c.stride,
           w.external_id as "workspaceId", d.external_id as "dimensionId",
           ${epochMs("d.period_start")} as "bucketStart", d.kind, d.state,
           d.stored_traces as "storedTraces", d.other_traces as "exportTraces", d.export_says as "exportSays"
    from (select * ${unresolved}) d
    join usage.scope c using (scope_id)
    join usage.entity w on w.entity_id = c.workspace_id
    order by array_position(${GROUPINGS}::text[], c.group_by), w.external_id, d.period_start, d.external_id, d.measure
    limit ${most}
  `;
  const count = (state: Difference["state"]) => counted.find((row) => row.state === state)?.differences ?? 0;
  return { open: count("open"), platformDisagrees: count("platform_disagrees"), first };
}

export async function endedSince(
  db: Database,
  { scopeIds, range, since }: Requested & { since: number },
): Promise<{ readonly [state: string]: number }> {
  const rows = await query<Pick<StoredDifference, "state"> & { differences: number }>(db)`
    select d.state, count(*) as differences from usage.difference d
    where d.closed_at >= ${new Date(since)} and ${areOf({ scopeIds, range })}
    group by state
  `;
  return Object.fromEntries(rows.map(({ state, differences }) => [state, differences]));
}

/** Returns the meters and strides stored in a range, finest stride first, with their number of remaining differences. */
export async function storedStrides(
  db: Database,
  requested: {
    sourceId: number;
    groupings: readonly GroupBy[];
    workspaceIds: readonly string[];
    range: Interval;
  },
): Promise<{ meter: Meter; stride: Stride; differences: number }[]> {
  const [from, to] = [new Date(requested.range.start), new Date(requested.range.end)];
  return query<{ meter: Meter; stride: Stride; differences: number }>(db)`
    select ${METER_OF_SCOPE} as meter, c.stride, sum((
             select count(*) from usage.difference d
             where d.compared_with = 'export' and d.scope_id = c.scope_id and d.closed_at is null
               and d.period_start >= ${from} and d.period_start < ${to}
           ))::integer as differences
    from usage.scope c join usage.entity w on w.entity_id = c.workspace_id
    where c.source_id = ${requested.sourceId} and c.group_by = any (${requested.groupings}::text[])
      and ${METER_OF_SCOPE} is not null and w.external_id = any (${requested.workspaceIds}::text[]) and exists (
        select from usage.coverage v
        where v.scope_id = c.scope_id and v.period_start < ${to} and v.period_end > ${from}
      )
    group by 1, 2
    order by array_position(${METERS}::text[], min(${METER_OF_SCOPE})), array_position(${STRIDES}::text[], c.stride)
  `;
}
