import { type RawBuilder, sql } from "kysely";
import type { FetchToken } from "../../domain/coverage/finality.ts";
import { ceilToGrid, DAY_MS, floorToGrid, type Stride } from "../../domain/time/stride.ts";
import type { Interval, Window } from "../../domain/time/window.ts";
import { type JsonParts, partsAsJson, toIntervals } from "../catalog/scope-time.ts";
import type { Scope } from "../catalog/scopes.ts";
import { type Database, query, queryValues, type Row } from "../db/query.ts";
import { recordTable, storedIn } from "./load-statements.ts";

export interface ByWorkspace {
  readonly fetchToken: FetchToken;
  readonly scopeId: number;
  /**
   * Time that these responses prove to be zero and no stored figure contradicts: the whole window if the workspace has no
   * traces in it, else the time without traces that was never loaded.
   */
  readonly zero: readonly Interval[];
  /** When this was read, by Postgres's clock, epoch ms. A task may have waited since these responses came. */
  readonly now: number;
}

/** Whether a dimension of a source names more traces than its workspace has (rule 4 of docs/rules.md). */
export async function exceedsWorkspaces(db: Database, sourceId: number): Promise<boolean> {
  const rows = await query(db)`select where ${exceeds(sql`${sourceId}`)}`;
  return rows.length > 0;
}

function exceeds(sourceId: RawBuilder<unknown>): RawBuilder<boolean> {
  return sql`exists (
    select from usage.difference d join usage.scope c using (scope_id)
    where c.source_id = ${sourceId} and d.compared_with = 'grouping_total' and d.state = 'platform_disagrees'
  )`;
}

/**
 * Returns, by scope id, what workspace responses sent since `since` (epoch ms) prove about a window. Scopes without complete or
 * credible responses are left out.
 */
export async function byWorkspace(
  db: Database,
  { scopeIds, window, since }: { scopeIds: readonly number[]; window: Window; since: number },
): Promise<Map<number, ByWorkspace>> {
  const requested = rangeOf(window);
  type Found = Record<"number" | "ofWorkspace", number> & Record<"at" | "now", Date>;
  const rows = await query<Row<"usage.scope", "scopeId"> & Found & { zero: JsonParts | null }>(db)`
    select s.scope_id as "scopeId", w.scope_id as "ofWorkspace", a.number, a.at, clock_timestamp() as now,
           ${partsAsJson(sql`case
             when not a.traced && ${requested} and o.newest < a.number and not o.traced && ${requested} then tstzmultirange(${requested})
             when o.loaded <> '{}' and not a.traced && (tstzmultirange(${requested}) - o.loaded) then tstzmultirange(${requested}) - o.loaded
           end`)} as zero
    from usage.scope s
    join usage.scope w using (source_id, kind, trace_tier, workspace_id, stride)
    cross join lateral (
      select min(v.fetch_number) as number, min(v.fetched_at) as at, range_agg(v.traced) as traced,
             range_agg(tstzrange(v.period_start, v.period_end)) as loaded
      from usage.coverage v where v.scope_id = w.scope_id and ${overlaps(requested, "v")} and v.fetched_at >= ${new Date(since)}
    ) a
    cross join lateral (
      select coalesce(max(v.fetch_number), 0) as newest, coalesce(range_agg(v.traced), '{}') as traced,
             coalesce(range_agg(tstzrange(v.period_start, v.period_end)), '{}') as loaded
      from usage.coverage v where v.scope_id = s.scope_id and ${overlaps(requested, "v")}
    ) o
    where s.scope_id = any (${scopeIds}::integer[]) and w.group_by = 'workspace' and a.loaded @> ${requested}
      and not exists (select from usage.failure f where f.scope_id = w.scope_id and ${overlaps(requested, "f")})
      and not ${exceeds(sql`s.source_id`)}
  `;
  return new Map(
    rows.map(({ scopeId, ofWorkspace, number, at, now, zero }) => [
      scopeId,
      {
        fetchToken: { fetchNumber: number, fetchedAt: at.getTime() },
        scopeId: ofWorkspace,
        zero: toIntervals(zero ?? []),
        now: now.getTime(),
      },
    ]),
  );
}

interface Age {
  readonly window: Window;
  readonly fetchedAfter: number;
  readonly finalUntil: number;
}

/**
 * Returns the scopes whose stored figures need no new response (rule 4 of docs/rules.md). Their window was fetched after
 * `fetchedAfter`, nothing failed since, no figure can become final yet (`finalUntil`), and each bucket matches the workspace's
 * count. Hours may be older if their days are not, and each id has the same sum in both.
 */
export async function addUp(
  db: Database,
  workspaceOf: ReadonlyMap<number, number>,
  age: Age,
): Promise<ReadonlySet<number>> {
  const { window, fetchedAfter, finalUntil } = age;
  const scopeIds = [...workspaceOf.keys()];
  const loaded = await loadedSince(db, { scopeIds, requested: rangeOf(window), finalUntil });
  const isYoung = (scopeId: number) => (loaded.get(scopeId) ?? 0) > fetchedAfter;
  const old = window.stride === "hour" ? [...loaded.keys()].filter((scopeId) => !isYoung(scopeId)) : [];
  const ids = [...scopeIds.filter(isYoung), ...(await addUpToDays(db, old, age))];
  if (ids.length === 0) return new Set();
  const workspaces = ids.map((scopeId) => workspaceOf.get(scopeId) as number);
  const stored = storedIn(recordTable(window.stride), {
    scopeIds: [...new Set([...ids, ...workspaces])],
    period: window,
  });
  const different = await queryValues<number>(db)`
    with stored as materialized (
      select scope_id, bucket_start, sum(traces) as traces
      from (${stored}) r group by 1, 2
    ), of_workspace as (
      select * from unnest(${ids}::integer[], ${workspaces}::integer[]) o (scope_id, workspace_scope_id)
    )
    select distinct scope_id as "scopeId"
    from (
      select scope_id, bucket_start, r.traces as own, 0 as whole from of_workspace join stored r using (scope_id)
      union all
      select o.scope_id, r.bucket_start, 0, r.traces from of_workspace o join stored r on r.scope_id = o.workspace_scope_id
    ) t group by scope_id, bucket_start having sum(own) <> sum(whole)
  `;
  const differ = new Set(different);
  return new Set(ids.filter((scopeId) => !differ.has(scopeId)));
}

/** Returns the workspaces (platform ids) without traces in the last day. Time that is not loaded by workspace is ignored. */
export async function idleWorkspaces(
  db: Database,
  { sourceId, workspaceIds }: { sourceId: number; workspaceIds?: readonly string[] },
): Promise<ReadonlySet<string>> {
  const lately = sql`tstzrange(now() - interval '1 day', null)`;
  const ids = await queryValues<string>(db)`
    select e.external_id as id
    from usage.trace_scope s
    join usage.coverage v using (scope_id)
    join usage.entity e on e.entity_id = s.workspace_id
    where s.source_id = ${sourceId} and s.group_by = 'workspace' and v.period_end > lower(${lately})
      ${workspaceIds === undefined ? sql`` : sql`and e.external_id = any (${workspaceIds}::text[])`}
    group by 1 having not bool_or(v.traced && ${lately})
  `;
  return new Set(ids);
}

/**
 * Returns when the oldest part of a range was fetched, by scope, epoch ms. Leaves out scopes with missing or failed time, or
 * time that can become final.
 */
async function loadedSince(
  db: Database,
  given: { scopeIds: readonly number[]; requested: RawBuilder<unknown>; finalUntil: number },
): Promise<Map<number, number>> {
  const { scopeIds, requested, finalUntil } = given;
  const rows = await query<Row<"usage.coverage", "scopeId"> & { since: Date }>(db)`
    select v.scope_id as "scopeId", min(v.fetched_at) as since from usage.coverage v
    where v.scope_id = any (${scopeIds}::integer[]) and ${overlaps(requested, "v")}
      and not exists (select from usage.failure f where f.scope_id = v.scope_id and ${overlaps(requested, "f")})
    group by 1
    having range_agg(tstzrange(v.period_start, v.period_end)) @> ${requested}
      and bool_and(v.final or greatest(v.period_start, lower(${requested})) >= ${new Date(finalUntil)})
  `;
  return new Map(rows.map(({ scopeId, since }) => [scopeId, since.getTime()]));
}

/** Returns scopes of hours whose days are loaded and young enough, if each entity has the same sum in both. */
async function addUpToDays(db: Database, scopeIds: readonly number[], age: Age): Promise<number[]> {
  if (scopeIds.length === 0) return [];
  const { window, fetchedAfter, finalUntil } = age;
  const days = { start: floorToGrid(window.start, DAY_MS), end: ceilToGrid(window.end, DAY_MS) };
  const rows = await query<Row<"usage.scope", "scopeId"> & { ofDays: number }>(db)`
    select s.scope_id as "scopeId", d.scope_id as "ofDays"
    from usage.scope s join usage.scope d using (source_id, kind, trace_tier, group_by, workspace_id)
    where s.scope_id = any (${scopeIds}::integer[]) and d.stride = 'day'
  `;
  const dayScopes = rows.map(({ ofDays }) => ofDays);
  const since = await loadedSince(db, { scopeIds: dayScopes, requested: rangeOf(days), finalUntil });
  const young = rows.filter(({ ofDays }) => (since.get(ofDays) ?? 0) > fetchedAfter);
  if (young.length === 0) return [];
  const hours = young.map(({ scopeId }) => scopeId);
  const ofDays = young.map((one) => one.ofDays);
  const inHours = storedIn(recordTable("hour"), { scopeIds: hours, period: days });
  const onDays = storedIn(recordTable("day"), { scopeIds: ofDays, period: days });
  const different = await queryValues<number>(db)`
    select distinct scope_id as "scopeId"
    from (
      select r.scope_id, e.entity_id, (r.bucket_start at time zone 'UTC')::date as day, r.traces as in_hours, 0 as on_day
      from (${inHours}) r join usage.series e using (series_id)
      union all
      select o.scope_id, e.entity_id, r.bucket_start, 0, r.traces
      from (${onDays}) r join usage.series e using (series_id)
      join unnest(${hours}::integer[], ${ofDays}::integer[]) o (scope_id, day_scope_id) on o.day_scope_id = r.scope_id
    ) t group by scope_id, entity_id, day having sum(in_hours) <> sum(on_day)
  `;
  const differ = new Set(different);
  return hours.filter((scopeId) => !differ.has(scopeId));
}

export type OtherScope = Pick<Scope, "scopeId" | "groupBy" | "workspaceId">;

/**
 * Returns the scopes of the other dimensions of the same workspaces. Leaves out scopes with a failure in the window that is not
 * due yet, and scopes whose window is all final.
 */
export async function otherScopes(
  db: Database,
  { scopeIds, window }: { scopeIds: readonly number[]; window: Window },
): Promise<OtherScope[]> {
  const requested = rangeOf(window);
  return query<OtherScope>(db)`
    select o.scope_id as "scopeId", o.group_by as "groupBy", e.external_id as "workspaceId"
    from usage.scope w
    join usage.scope o using (source_id, kind, trace_tier, workspace_id, stride)
    join usage.entity e on e.entity_id = o.workspace_id
    where w.scope_id = any (${scopeIds}::integer[]) and o.group_by <> 'workspace'
      and not exists (
        select from usage.failure f
        where f.scope_id = o.scope_id and f.retry_at > now() and ${overlaps(requested, "f")}
      )
      and not coalesce((
        select range_agg(tstzrange(v.period_start, v.period_end)) @> ${requested} from usage.coverage v
        where v.scope_id = o.scope_id and v.final and ${overlaps(requested, "v")}
      ), false)
    order by 1
  `;
}

/** Returns loaded time without traces by workspace (platform id) and stride. Empty if workspace responses are not credible. */
export async function timeWithoutTraces(
  db: Database,
  sourceId: number,
): Promise<ReadonlyMap<string, readonly Interval[]>> {
  const rows = await query<{ id: string; stride: Stride; parts: JsonParts | null }>(db)`
    select e.external_id as id, t.stride, ${partsAsJson(sql`t.time`)} as parts
    from (
      select s.workspace_id, s.stride, range_agg(tstzrange(v.period_start, v.period_end)) - range_agg(v.traced) as time
      from usage.trace_scope s join usage.coverage v using (scope_id)
      where s.source_id = ${sourceId} and s.group_by = 'workspace' and not ${exceeds(sql`${sourceId}`)}
      group by s.workspace_id, s.stride
    ) t
    join usage.entity e on e.entity_id = t.workspace_id
  `;
  return new Map(rows.map(({ id, stride, parts }) => [`${id} ${stride}`, toIntervals(parts ?? [])]));
}

function overlaps(range: RawBuilder<unknown>, row: "v" | "f"): RawBuilder<boolean> {
  const name = sql.raw(row);
  return sql`${name}.period_start < upper(${range}) and ${name}.period_end > lower(${range})`;
}

function rangeOf({ start, end }: Interval) {
  return sql`tstzrange(${new Date(start)}, ${new Date(end)})`;
}
