import { type RawBuilder, sql } from "kysely";
import { scopeIdsOf, type UsageRequest, workspaceIdsOf } from "../../domain/planning/request.ts";
import type { Interval, Window } from "../../domain/time/window.ts";
import { type Meter, meterOf } from "../../domain/usage/meter.ts";
import { type JsonParts, partsAsJson, toIntervals } from "../catalog/scope-time.ts";
import { METER_OF_SCOPE } from "../catalog/scopes.ts";
import { anyOf } from "../db/expressions.ts";
import { change, type Database, query, queryOne, type Row } from "../db/query.ts";

export interface StoredTask extends UsageRequest {
  readonly taskId: number;
  readonly sourceId: number;
  readonly backfillId: number | undefined;
  readonly runId: number | undefined;
  readonly generation: number;
  readonly openClaims: number;
}

export interface ClaimedTask extends StoredTask {
  readonly createdAt: number;
  readonly isLoaded: boolean;
  /** True in a backfill that fetches everything again. It does not trust stored digests. */
  readonly isRepair: boolean;
}

/** How long a task may wait in the queue, or run without a sign of life, before it is requeued. */
const LEASE = sql`interval '10 minutes'`;

/**
 * SQL: when the oldest figure that task `r` fetches again was fetched. Hours are as old as their days, which prove them. Null
 * if nothing is loaded.
 */
const REQUESTED_AT = sql`(
  select case when bool_or(v.scope_id = s.scope_id)
         then greatest(min(v.fetched_at) filter (where v.scope_id = s.scope_id), min(v.fetched_at) filter (where v.scope_id <> s.scope_id)) end
  from usage.scope s
  join usage.scope d using (source_id, kind, trace_tier, group_by, workspace_id)
  join usage.coverage v on v.scope_id = d.scope_id and not v.final and v.period_start < r.period_end and v.period_end > r.period_start
  where s.scope_id = r.scope_ids[1] and (d.stride = s.stride or s.stride = 'hour' and d.stride = 'day')
)`;

export async function createTasks(
  db: Database,
  work: {
    sourceId: number;
    backfillId?: number | undefined;
    runId?: number | undefined;
    tasks: readonly UsageRequest[];
    /** Whether a task's workspace had no recent traces. Default: false. */
    isIdle?: ((task: UsageRequest) => boolean) | undefined;
    /** Age from which figures by project, user or key are due. Default: never. */
    dueAfterMs?: number | undefined;
    /** When the workspace's task was created, epoch ms. Default: now. */
    createdAt?: number | undefined;
  },
): Promise<number> {
  const { createdAt, dueAfterMs } = work;
  const dueFrom =
    dueAfterMs === undefined
      ? sql`null::timestamptz`
      : sql`case when r.group_by <> 'workspace' then ${REQUESTED_AT} + make_interval(secs => ${dueAfterMs / 1000}) end`;
  let created = 0;
  // JSON, because rows of a Postgres array of arrays have one length. 500 rows keep a statement small.
  for (let first = 0; first < work.tasks.length; first += 500) {
    const rows = work.tasks.slice(first, first + 500).map((task) => ({
      group_by: task.groupBy,
      stride: task.window.stride,
      period_start: new Date(task.window.start).toISOString(),
      period_end: new Date(task.window.end).toISOString(),
      scope_ids: scopeIdsOf(task),
      workspace_ids: workspaceIdsOf(task),
      is_idle: work.isIdle?.(task) ?? false,
    }));
    created += await change(db)`
      insert into usage.fetch_task
        (source_id, backfill_id, run_id, group_by, stride, period_start, period_end, scope_ids, workspace_ids, is_idle, due_from${createdAt === undefined ? sql`` : sql`, created_at`})
      select ${work.sourceId}, ${work.backfillId ?? null}::integer, ${work.runId ?? null}::integer, r.group_by, r.stride, r.period_start, r.period_end,
             r.scope_ids, r.workspace_ids, r.is_idle, ${dueFrom}${createdAt === undefined ? sql`` : sql`, ${new Date(createdAt)}`}
      from json_to_recordset(${JSON.stringify(rows)}::json) r (
        group_by text, stride text, period_start timestamptz, period_end timestamptz,
        scope_ids integer[], workspace_ids text[], is_idle boolean
      )
      on conflict do nothing
    `;
  }
  return created;
}

/**
 * Returns time in flight by scope, in the normal form: queued, or waiting and not paused. Postgres merges it, because a large
 * customer's first load has hundreds of thousands of tasks. Scopes with the same time share one list.
 */
export async function tasksInFlight(db: Database, sourceId: number): Promise<Map<number, Interval[]>> {
  const rows = await query<{ scopeIds: number[]; parts: JsonParts }>(db)`
    select json_agg(scope_id) as "scopeIds", ${partsAsJson(sql`parts`)} as parts
    from (
      select u.scope_id, range_agg(tstzrange(s.period_start, s.period_end)) as parts
      from usage.fetch_task s left join usage.backfill b using (backfill_id) cross join unnest(s.scope_ids) u (scope_id)
      where s.source_id = ${sourceId}
        and (s.state = 'queued' or (s.state = 'waiting' and b.state is distinct from 'paused'))
      group by u.scope_id
    ) f group by f.parts
  `;
  return new Map(
    rows.flatMap(({ scopeIds, parts }) => {
      const inFlight = toIntervals(parts);
      return scopeIds.map((scopeId) => [scopeId, inFlight] as const);
    }),
  );
}

/** Window of a workspace task. When it ends, the task creates the tasks of other dimensions that need a response. */
export interface WorkspaceWindow {
  readonly meter: Meter;
  readonly window: Window;
  readonly workspaceIds: readonly string[];
}

export async function workspaceWindows(db: Database, sourceId: number): Promise<WorkspaceWindow[]> {
  const rows = await query<
    Row<"usage.fetch_task", "stride" | "workspaceIds"> & { meter: Meter; start: Date; end: Date }
  >(db)`
    select ${METER_OF_SCOPE} as meter, t.stride, t.period_start as start, t.period_end as "end", t.workspace_ids as "workspaceIds"
    from usage.fetch_task t join usage.scope c on c.scope_id = t.scope_ids[1]
    where t.source_id = ${sourceId} and t.backfill_id is null and t.group_by = 'workspace' and t.state in ('waiting', 'queued')
  `;
  return rows.map(({ meter, workspaceIds, ...window }) => ({
    meter,
    workspaceIds,
    window: { stride: window.stride, start: window.start.getTime(), end: window.end.getTime() },
  }));
}

/** SQL: kind and tier, which a task's scopes share. Null if the scopes were forgotten. */
const METERS_OF_SCOPES = sql<string[][] | null>`(
  select array_agg(distinct array[c.kind, c.trace_tier]) from usage.scope c where c.scope_id = any (fetch_task.scope_ids)
)`;

/** Coverage at the beginning of the claim: a load that ends meanwhile costs an unnecessary request. */
const IS_LOADED = sql<boolean>`coalesce((
  select bool_and(c.loaded @> tstzrange(fetch_task.period_start, fetch_task.period_end))
  from unnest(fetch_task.scope_ids) u (scope_id)
  cross join lateral (
    select coalesce(range_agg(tstzrange(v.period_start, v.period_end)), '{}') as loaded
    from usage.coverage v
    where v.scope_id = u.scope_id and v.fetched_at >= fetch_task.created_at
      and v.period_start < fetch_task.period_end and v.period_end > fetch_task.period_start
  ) c
), false)`;

const IS_REPAIR = sql<boolean>`exists (
  select from usage.backfill b where b.backfill_id = fetch_task.backfill_id and b.reprocess = 'all'
)`;

/** Undefined if only a newer release knows the meter of the task. */
function sharedMeter(found: readonly string[][] | null): Meter | undefined {
  if (found === null) return "traces";
  const [kind = "", tier = ""] = found[0] ?? [];
  return found.length === 1 ? meterOf(kind, tier) : undefined;
}

type ClaimedColumn = keyof StoredTask | "stride" | "scopeIds" | "workspaceIds";

interface ClaimedRow
  extends Row<"usage.fetch_task", Extract<ClaimedColumn, keyof Row<"usage.fetch_task">>>,
    Pick<ClaimedTask, "isLoaded" | "isRepair"> {
  readonly start: Date;
  readonly end: Date;
  readonly createdAt: Date;
  readonly meters: string[][] | null;
}

/** Undefined if the message is stale (its task is done, requeued or cancelled), or only a newer release knows the meter. */
export async function claimTask(
  db: Database,
  claim: { taskId: number; generation: number },
): Promise<ClaimedTask | undefined> {
  const [row] = await query<ClaimedRow>(db)`
    update usage.fetch_task set open_claims = open_claims + 1, leased_until = now() + ${LEASE}
    where task_id = ${claim.taskId} and generation = ${claim.generation} and state = 'queued'
    returning task_id as "taskId", source_id as "sourceId", backfill_id as "backfillId", run_id as "runId", generation,
              open_claims as "openClaims", group_by as "groupBy", stride, period_start as start, period_end as "end",
              created_at as "createdAt", scope_ids as "scopeIds", workspace_ids as "workspaceIds",
              ${METERS_OF_SCOPES} as meters, ${IS_LOADED} as "isLoaded", ${IS_REPAIR} as "isRepair"
  `;
  const meter = row && sharedMeter(row.meters);
  if (row === undefined) return undefined;
  if (meter === undefined) {
    await handBackTask(db, row.taskId);
    return undefined;
  }
  const {
    backfillId,
    runId,
    stride,
    start,
    end,
    createdAt,
    scopeIds,
    workspaceIds,
    meters: _,
    ...rest
  } = row;
  return {
    ...rest,
    backfillId: backfillId ?? undefined,
    runId: runId ?? undefined,
    meter,
    window: { stride, start: start.getTime(), end: end.getTime() },
    members: workspaceIds.map((workspaceId, i) => ({ workspaceId, scopeId: scopeIds[i] as number })),
    createdAt: createdAt.getTime(),
  };
}

/** Takes a claim back, because its worker lives. Another worker may do the task, under this generation or a later one. */
export async function handBackTask(db: Database, taskId: number): Promise<void> {
  const open_claims = sql<number>`greatest(open_claims - 1, 0)`;
  const task = db.updateTable("usage.fetch_task").set({ open_claims }).where("task_id", "=", taskId);
  await task.where("state", "in", ["waiting", "queued"]).execute();
}

export interface TaskEnd {
  readonly task: Pick<StoredTask, "taskId" | "generation" | "backfillId">;
  readonly state: "done" | "failed";
  readonly code?: string | undefined;
  readonly message?: string | undefined;
}

/** A task of the routine is removed; a task of a backfill stays as done or failed, with its reason. */
export async function endTask(db: Database, end: TaskEnd): Promise<void> {
  await endingOf(end).execute(db);
}

/**
 * Returns the statement that ends a task, as part of another one. The statement tests the row itself: if a requeue locks the
 * row, Postgres waits and tests again, so a task of a newer generation goes on.
 */
export function endingOf({ task, state, code, message }: TaskEnd): RawBuilder<unknown> {
  const itself = sql`task_id = ${task.taskId} and generation = ${task.generation} and state = 'queued'`;
  if (task.backfillId === undefined) return sql`delete from usage.fetch_task where ${itself}`;
  return sql`
    update usage.fetch_task
    set state = ${state}, code = ${code ?? null}, message = ${message ?? null}, leased_until = null, finished_at = now()
    where ${itself}`;
}

export async function releaseTasks(db: Database, taskIds: readonly number[]): Promise<void> {
  const queued = db.updateTable("usage.fetch_task").where("state", "=", "queued");
  await queued.set({ state: "waiting", leased_until: null }).where("task_id", "=", anyOf(taskIds)).execute();
}

/** How long messages may be missing in Redis after Postgres committed that their tasks are queued. */
const UNDER_WAY = sql`interval '10 seconds'`;

/** `expired` tasks have outlived their lease. `underWay` tasks were queued, or gave a sign of life, just now. */
export async function queuedTasks(db: Database, sourceId: number) {
  return query<Row<"usage.fetch_task", "taskId" | "generation"> & { expired: boolean; underWay: boolean }>(
    db,
  )`
    select task_id as "taskId", generation, leased_until < now() as expired,
           leased_until > now() + ${LEASE} - ${UNDER_WAY} as "underWay"
    from usage.fetch_task where source_id = ${sourceId} and state = 'queued'
  `;
}

/** Counts tasks of syncs only, because those of a paused backfill would wait for ever. */
export async function routineTasks(db: Database, sourceId: number) {
  return queryOne<{ waiting: number; queued: number }>(db)`
    select count(*) filter (where state = 'waiting')::integer as waiting,
           count(*) filter (where state = 'queued')::integer as queued
    from usage.fetch_task where source_id = ${sourceId} and backfill_id is null
  `;
}

/** Fetch tasks of syncs that have waited longer than a sync interval, because other tasks came first. */
export interface PutOffTasks {
  readonly source: string;
  readonly tasks: number;
  readonly byHour: number;
  readonly quiet: number;
  /** Tasks, backfills included, that have waited at least this long. No other task comes before the last of them. */
  readonly ahead: number;
}

export async function putOffTasks(
  db: Database,
  { syncEveryMs, source }: { readonly syncEveryMs: number; readonly source?: string },
): Promise<PutOffTasks[]> {
  return query<PutOffTasks>(db)`
    select s.slug as source, count(*) filter (where w.backfill_id is null)::integer as tasks,
           count(*) filter (where w.backfill_id is null and w.stride = 'hour')::integer as "byHour",
           count(*) filter (where w.backfill_id is null and w.is_idle)::integer as quiet, count(*)::integer as ahead
    from usage.fetch_task w join usage.source s using (source_id) left join usage.backfill b using (backfill_id)
    where w.state = 'waiting' and (b.state = 'running' or w.backfill_id is null)
      and coalesce(b.created_at, w.created_at) < now() - make_interval(secs => ${syncEveryMs / 1000})
      and s.slug = coalesce(${source ?? null}, s.slug)
    group by 1 having count(*) filter (where w.backfill_id is null) > 0
  `;
}

export const SHARE_OF_OLDEST = 0.25;

const NEXT_FIRST = sql`(w.group_by <> 'workspace'), (w.stride = 'hour'), w.is_idle, w.period_start desc`;

/**
 * Takes the next waiting tasks for the queue, up to `most` queued tasks of a source. Routine tasks come before backfills, and
 * workspace tasks before those of other dimensions. Of these, due tasks come first: days before hours, the longest due first.
 * Then days come before hours, busy workspaces before idle ones, new time before old. A share goes to the longest waiting
 * tasks; a backfill's tasks have waited since it began. Otherwise new provisional time could use up the rate limit for good.
 * Needs a transaction, so that only one caller enqueues at a time. Reads only as many tasks of each kind as there are places:
 * hundreds of thousands may wait.
 */
export async function takeTasksToQueue(
  db: Database,
  { sourceId, most }: { sourceId: number; most: number },
): Promise<Pick<StoredTask, "taskId" | "generation" | "backfillId">[]> {
  // Two callers that count at once would each fill the queue (test/integration/service/backfill.test.ts).
  const chosen = db.selectFrom("usage.source").where("source_id", "=", sourceId);
  const source = await chosen.select("refused_at").forNoKeyUpdate().executeTakeFirst();
  if (source?.refused_at !== null) return [];
  const queued = await query<{ count: number }>(db)`
    select count(*)::integer as count from usage.fetch_task where source_id = ${sourceId} and state = 'queued'
  `;
  const places = most - (queued[0]?.count ?? 0);
  if (places <= 0) return [];
  // If few places become free at a time, chance sometimes gives one to the oldest tasks.
  const oldest = Math.floor(places * SHARE_OF_OLDEST + Math.random());
  // Literals, because with parameters Postgres would have to plan for any number of places.
  const limit = sql.lit(places);
  const rows = await query<
    Row<"usage.fetch_task", "taskId" | "generation" | "backfillId"> & { turn: number }
  >(db)`
    with running as (
      select backfill_id, created_at from usage.backfill where source_id = ${sourceId} and state = 'running'
    ), next as (
      select task_id, row_number() over (order by min(array[rank, place])) as turn
      from (
        select task_id, 0 as rank, row_number() over (order by created_at, place) as place
        from (
          select task_id, created_at, row_number() over () as place
          from (
            select w.task_id, w.created_at from usage.fetch_task w
            where w.source_id = ${sourceId} and w.state = 'waiting' and w.backfill_id is null
            order by w.created_at, ${NEXT_FIRST}, w.task_id
            limit ${sql.lit(oldest)}
          ) of_oldest
          union all
          select o.task_id, b.created_at, o.place
          from running b
          cross join lateral (
            select task_id, row_number() over () as place
            from (
              select w.task_id from usage.fetch_task w
              where w.source_id = ${sourceId} and w.backfill_id = b.backfill_id and w.state = 'waiting'
              order by ${NEXT_FIRST}
              limit ${sql.lit(oldest)}
            ) of_backfill
          ) o
          order by 2, 3
          limit ${sql.lit(oldest)}
        ) longest
        union all
        select o.task_id, 2, row_number() over (order by o.hours, o.due_from)
        from (values (false), (true)) k (hours)
        cross join lateral (
          select w.task_id, k.hours, w.due_from from usage.fetch_task w
          where w.source_id = ${sourceId} and w.state = 'waiting' and w.backfill_id is null
            and (w.stride = 'hour') = k.hours and w.due_from <= now()
          order by w.due_from
          limit ${limit}
        ) o
        union all
        select task_id, case when is_other then 3 else 1 end, row_number() over ()
        from (
          select w.task_id, w.group_by <> 'workspace' as is_other from usage.fetch_task w
          where w.source_id = ${sourceId} and w.state = 'waiting' and w.backfill_id is null
          -- backfill_id is null here. The index needs it in the order.
          order by w.backfill_id, ${NEXT_FIRST}
          limit ${limit}
        ) of_routine
        union all
        select o.task_id, 4, row_number() over (order by o.other, o.hours, o.is_idle, o.period_start desc)
        from running b
        cross join lateral (
          select w.task_id, (w.group_by <> 'workspace') as other, (w.stride = 'hour') as hours, w.is_idle, w.period_start
          from usage.fetch_task w
          where w.source_id = ${sourceId} and w.backfill_id = b.backfill_id and w.state = 'waiting'
          order by ${NEXT_FIRST}
          limit ${limit}
        ) o
      ) waiting
      group by task_id
      order by turn
      limit ${limit}
    )
    update usage.fetch_task s
    set state = 'queued', generation = s.generation + 1, leased_until = now() + ${LEASE}
    from (
      select w.task_id, next.turn from usage.fetch_task w join next using (task_id)
      where w.state = 'waiting'
      order by next.turn
      for update of w skip locked
    ) free
    where s.task_id = free.task_id
    returning s.task_id as "taskId", s.generation, s.backfill_id as "backfillId", free.turn::integer
  `;
  return rows
    .sort((one, other) => one.turn - other.turn)
    .map(({ taskId, generation, backfillId }) => ({
      taskId,
      generation,
      backfillId: backfillId ?? undefined,
    }));
}
