import { type RawBuilder, sql } from "kysely";
import type { FetchStamp } from "../../domain/coverage/finality.ts";
import { ceilToGrid, DAY_MS, floorToGrid, type Stride } from "../../domain/time/stride.ts";
import type { Interval, Window } from "../../domain/time/window.ts";
import { type JsonParts, partsAsJson, toIntervals } from "../catalog/scope-time.ts";
import type { Database } from "../db/database.ts";
import { recordTable, storedIn } from "./load-statements.ts";

/** What answers by workspace say of a window of another dimension. */
export interface ByWorkspace {
  /** Of the oldest of them. */
  readonly stamp: FetchStamp;
  /** The scope that they were loaded for. */
  readonly scopeId: number;
  /** The workspace has no traces in the window. */
  readonly isZero: boolean;
  /** When this was read, by Postgres's clock, epoch milliseconds. A task may have waited since these answers came. */
  readonly now: number;
}

/**
 * Whether some dimension of a source was found to name more traces than its workspace has. There the one says nothing of the other, and
 * each dimension is asked for.
 */
export async function exceedsWorkspaces(db: Database, sourceId: number): Promise<boolean> {
  const { rows } = await sql`select where ${exceeds(sql`${sourceId}`)}`.execute(db);
  return rows.length > 0;
}

function exceeds(sourceId: RawBuilder<unknown>): RawBuilder<boolean> {
  return sql`exists (
    select from usage.control_difference d join usage.scope c using (scope_id)
    where c.source_id = ${sourceId} and d.kind = 'grouping_total' and d.state = 'platform_disagrees'
  )`;
}

/** The answers by workspace, sent at `since` (epoch milliseconds) or later, that cover a window. Undefined: they do not, or are not to be believed. */
export async function byWorkspace(
  db: Database,
  { scopeId, window, since }: { scopeId: number; window: Window; since: number },
): Promise<ByWorkspace | undefined> {
  const asked = rangeOf(window);
  const { rows } = await sql<{ number: number; at: Date; now: Date; scopeId: number; isZero: boolean }>`
    select min(v.fetch_number) as number, min(v.fetched_at) as at, clock_timestamp() as now, w.scope_id as "scopeId",
           bool_and(not v.traced && ${asked}) as "isZero"
    from usage.scope s
    join usage.scope w using (source_id, kind, trace_tier, workspace_id, stride)
    join usage.coverage v on v.scope_id = w.scope_id and v.period_start < upper(${asked}) and v.period_end > lower(${asked})
    where s.scope_id = ${scopeId} and w.group_by = 'workspace' and v.fetched_at >= ${new Date(since)}
      and not exists (
        select from usage.failure f
        where f.scope_id = w.scope_id and f.period_start < upper(${asked}) and f.period_end > lower(${asked})
      )
      and not ${exceeds(sql`s.source_id`)}
    group by w.scope_id
    having range_agg(tstzrange(v.period_start, v.period_end)) @> ${asked}
  `.execute(db);
  const [found] = rows;
  if (found === undefined) return undefined;
  const { number, at, now, scopeId: workspaceScopeId, isZero } = found;
  const stamp = { fetchNumber: number, fetchedAt: at.getTime() };
  return { stamp, scopeId: workspaceScopeId, isZero, now: now.getTime() };
}

/**
 * Whether what is stored of a scope needs no new answer: all of the window was fetched after `fetchedAfter` and nothing of it failed since, none
 * of it would be final if it was fetched again (`finalUntil`), and in each bucket it adds up to the count by workspace. Hours may be older if
 * their days are not, and each project, user or key has as many in the hours of a day as on that day. Epoch milliseconds.
 */
export async function addsUp(
  db: Database,
  given: {
    scopeId: number;
    workspaceScopeId: number;
    window: Window;
    fetchedAfter: number;
    finalUntil: number;
  },
): Promise<boolean> {
  const { scopeId, workspaceScopeId, window, fetchedAfter, finalUntil } = given;
  const asked = rangeOf(window);
  const loaded = await loadedSince(db, { scopeId, asked, finalUntil });
  if (loaded === undefined) return false;
  if (loaded <= fetchedAfter && !(window.stride === "hour" && (await addUpToDays(db, given)))) return false;
  const stored = storedIn(recordTable(window.stride), {
    scopeIds: [scopeId, workspaceScopeId],
    period: window,
  });
  const { rows: different } = await sql`
    select from (${stored}) r group by bucket_start
    having sum(traces) filter (where scope_id = ${scopeId}) is distinct from sum(traces) filter (where scope_id = ${workspaceScopeId})
      and sum(traces) > 0
    limit 1
  `.execute(db);
  return different.length === 0;
}

/** Workspaces (the platform's ids) without traces since an instant (epoch milliseconds), as far as that time is loaded by workspace. */
export async function quietWorkspaces(
  db: Database,
  { sourceId, since }: { sourceId: number; since: number },
): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ id: string }>`
    select e.external_id as id
    from usage.trace_scope s
    join usage.coverage v using (scope_id)
    join usage.entity e on e.entity_id = s.workspace_id
    where s.source_id = ${sourceId} and s.group_by = 'workspace' and v.period_end > ${new Date(since)}
    group by 1 having not bool_or(v.traced && tstzrange(${new Date(since)}, null))
  `.execute(db);
  return new Set(rows.map(({ id }) => id));
}

/** When the oldest part of a range was fetched, epoch milliseconds; undefined where some is not loaded, failed since, or can become final. */
async function loadedSince(
  db: Database,
  { scopeId, asked, finalUntil }: { scopeId: number; asked: RawBuilder<unknown>; finalUntil: number },
): Promise<number | undefined> {
  const { rows } = await sql<{ since: Date }>`
    select min(v.fetched_at) as since from usage.coverage v
    where v.scope_id = ${scopeId} and v.period_start < upper(${asked}) and v.period_end > lower(${asked})
      and not exists (
        select from usage.failure f
        where f.scope_id = ${scopeId} and f.period_start < upper(${asked}) and f.period_end > lower(${asked})
      )
    having range_agg(tstzrange(v.period_start, v.period_end)) @> ${asked}
      and bool_and(v.final or greatest(v.period_start, lower(${asked})) >= ${new Date(finalUntil)})
  `.execute(db);
  return rows[0]?.since.getTime();
}

/** Whether the days of some hours are loaded and young enough, and each entity has the same in the hours of a day as on that day. */
async function addUpToDays(
  db: Database,
  given: { scopeId: number; window: Window; fetchedAfter: number; finalUntil: number },
): Promise<boolean> {
  const { scopeId, window, fetchedAfter, finalUntil } = given;
  const days = { start: floorToGrid(window.start, DAY_MS), end: ceilToGrid(window.end, DAY_MS) };
  const { rows } = await sql<{ dayScope: number }>`
    select d.scope_id as "dayScope"
    from usage.scope s join usage.scope d using (source_id, kind, trace_tier, group_by, workspace_id)
    where s.scope_id = ${scopeId} and d.stride = 'day'
  `.execute(db);
  const dayScope = rows[0]?.dayScope;
  if (dayScope === undefined) return false;
  const since = await loadedSince(db, { scopeId: dayScope, asked: rangeOf(days), finalUntil });
  if (since === undefined || since <= fetchedAfter) return false;
  const inHours = storedIn(recordTable("hour"), { scopeIds: [scopeId], period: days });
  const onDays = storedIn(recordTable("day"), { scopeIds: [dayScope], period: days });
  const { rows: different } = await sql`
    select from (
      select e.entity_id, (r.bucket_start at time zone 'UTC')::date as day, r.traces as in_hours, 0 as on_day
      from (${inHours}) r join usage.series e using (series_id)
      union all
      select e.entity_id, r.bucket_start, 0, r.traces from (${onDays}) r join usage.series e using (series_id)
    ) t group by entity_id, day having sum(in_hours) <> sum(on_day) limit 1
  `.execute(db);
  return different.length === 0;
}

/** By workspace (the platform's id) and stride: the time that is loaded by workspace without traces. None where answers by workspace are not believed. */
export async function timeWithoutTraces(
  db: Database,
  sourceId: number,
): Promise<ReadonlyMap<string, readonly Interval[]>> {
  const { rows } = await sql<{ id: string; stride: Stride; parts: JsonParts | null }>`
    select e.external_id as id, t.stride, ${partsAsJson(sql`t.time`)} as parts
    from (
      select s.workspace_id, s.stride, range_agg(tstzrange(v.period_start, v.period_end)) - range_agg(v.traced) as time
      from usage.trace_scope s join usage.coverage v using (scope_id)
      where s.source_id = ${sourceId} and s.group_by = 'workspace' and not ${exceeds(sql`${sourceId}`)}
      group by s.workspace_id, s.stride
    ) t
    join usage.entity e on e.entity_id = t.workspace_id
  `.execute(db);
  return new Map(rows.map(({ id, stride, parts }) => [`${id} ${stride}`, toIntervals(parts ?? [])]));
}

function rangeOf({ start, end }: Interval) {
  return sql`tstzrange(${new Date(start)}, ${new Date(end)})`;
}
