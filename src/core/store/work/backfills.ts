import { sql } from "kysely";
import { UsageError } from "../../base/errors.ts";
import type { UsageRequest } from "../../domain/planning/request.ts";
import { shortInstant } from "../../domain/time/days.ts";
import type { Interval } from "../../domain/time/window.ts";
import { lockSource } from "../catalog/scopes.ts";
import type { Store } from "../db/database.ts";
import { anyOf, CLOCK, iso, NOW } from "../db/expressions.ts";
import { change, type Database, query, queryOne, queryValues, type Row } from "../db/query.ts";
import { type Actor, recordAction } from "./operator-actions.ts";
import { beginRun } from "./runs.ts";
import { createTasks } from "./tasks.ts";

type BackfillColumn =
  | "backfillId"
  | "meter"
  | "stride"
  | "groupings"
  | "workspaceIds"
  | "reprocess"
  | "state";

export interface Backfill extends Row<"usage.backfill", BackfillColumn> {
  readonly source: string;
  readonly from: string;
  readonly to: string;
  readonly workspaces: number;
  /** Why the platform refuses the key, so that nothing is fetched. Null: the key works. */
  readonly refused: string | null;
  readonly createdAt: string;
  readonly finishedAt: string | null;
  readonly total: number;
  readonly done: number;
  readonly failed: number;
  readonly waiting: number;
}

interface NewBackfill
  extends Pick<Backfill, "meter" | "stride" | "groupings" | "workspaceIds" | "reprocess"> {
  readonly sourceId: number;
  readonly range: Interval;
  readonly tasks: readonly UsageRequest[];
  readonly by: Actor;
  /** Time of the preview, epoch ms by Postgres's clock. An equal backfill that started since then is returned. */
  readonly shownAt?: number;
}

/**
 * Creates a backfill, its tasks and the record of who ordered it, in one transaction. A backfill without tasks is done at once.
 * Returns the id, or that of an equal backfill started since the preview, so that a form sent twice, or two people with the
 * same preview, start one backfill.
 */
export async function createBackfill(store: Store, wanted: NewBackfill): Promise<number> {
  const { sourceId, meter, range, stride, groupings, workspaceIds, reprocess, tasks } = wanted;
  return store.transaction(async ({ db }) => {
    if (wanted.shownAt !== undefined) {
      // The second of two simultaneous requests waits here, and then sees the first backfill.
      await lockSource(db, sourceId);
      const same = await startedSince(db, { ...wanted, shownAt: wanted.shownAt });
      if (same !== undefined) return same;
    }
    const isDone = tasks.length === 0;
    // `now()` is too early, because the transaction may have waited for an equal backfill.
    const { backfillId } = await queryOne<Row<"usage.backfill", "backfillId">>(db)`
      insert into usage.backfill (source_id, meter, stride, groupings, reprocess, workspace_ids, period_start, period_end,
                                  created_at, state, finished_at)
      values (${sourceId}, ${meter}, ${stride}, ${groupings}, ${reprocess}, ${workspaceIds}, ${new Date(range.start)},
              ${new Date(range.end)}, ${CLOCK}, ${isDone ? "done" : "running"}, ${isDone ? CLOCK : null})
      returning backfill_id as "backfillId"
    `;
    const runId = await beginRun(db, { sourceId, kind: "backfill", backfillId });
    await createTasks(db, { sourceId, backfillId, runId, tasks });
    const detail = `backfill ${backfillId}: ${describeRequested(wanted)}`;
    await recordAction(db, wanted.by, { sourceId, action: "backfill.start", detail });
    return backfillId;
  });
}

export function describeRequested(requested: Omit<NewBackfill, "sourceId" | "by" | "shownAt">): string {
  const { meter, range, stride, groupings, workspaceIds, reprocess, tasks } = requested;
  const [from, to] = [range.start, range.end].map(shortInstant);
  const of = meter === "traces" ? "" : `${meter}, `;
  return `${of}${from} to ${to} by ${stride}, ${groupings.join(", ")}, ${workspaceIds.length} workspaces, ${reprocess}, ${tasks.length} fetch tasks`;
}

export async function startedSince(
  db: Database,
  wanted: Omit<NewBackfill, "tasks" | "by"> & { readonly shownAt: number },
): Promise<number | undefined> {
  const { sourceId, meter, range, stride, groupings, workspaceIds, reprocess, shownAt } = wanted;
  const [wantedGroupings, wantedIds] = [sql`${groupings}::text[]`, sql`${workspaceIds}::text[]`];
  const [backfill_id] = await queryValues<Backfill["backfillId"]>(db)`
    select backfill_id from usage.backfill
    where source_id = ${sourceId} and created_at >= ${new Date(shownAt)} and meter = ${meter} and stride = ${stride}
      and reprocess = ${reprocess}
      and period_start = ${new Date(range.start)} and period_end = ${new Date(range.end)}
      and groupings @> ${wantedGroupings} and groupings <@ ${wantedGroupings}
      and workspace_ids @> ${wantedIds} and workspace_ids <@ ${wantedIds}
    order by backfill_id desc limit 1
  `;
  return backfill_id;
}

interface Listed {
  readonly backfillId?: number;
  readonly source?: string | undefined;
  readonly states?: readonly Backfill["state"][];
  readonly before?: number | undefined;
  readonly most?: number;
}

export async function listBackfills(db: Database, listed: Listed = {}): Promise<Backfill[]> {
  const { backfillId = null, source = null, states = null, before = null, most = null } = listed;
  return query<Backfill>(db)`
    select b.backfill_id as "backfillId", b.slug as source, b.meter, b.stride, b.groupings, b.reprocess, b.state,
           cardinality(b.workspace_ids) as workspaces, b.workspace_ids as "workspaceIds", b.refused_message as refused,
           ${iso("b.period_start")} as "from", ${iso("b.period_end")} as "to",
           ${iso("b.created_at")} as "createdAt",
           ${iso("b.finished_at")} as "finishedAt", w.*
    from (
      select b.*, s.slug, s.refused_message
      from usage.backfill b join usage.source s using (source_id)
      where (${backfillId}::integer is null or b.backfill_id = ${backfillId})
        and (${states}::text[] is null or b.state = any (${states}))
        and (${source}::text is null or s.slug = ${source}) and (${before}::integer is null or b.backfill_id < ${before})
      order by b.backfill_id desc limit ${most}::integer
    ) b
    cross join lateral (
      select count(*)::integer as total,
             count(*) filter (where w.state = 'done')::integer as done,
             count(*) filter (where w.state = 'failed')::integer as failed,
             count(*) filter (where w.state in ('waiting', 'queued'))::integer as waiting
      from usage.fetch_task w where w.backfill_id = b.backfill_id
    ) w
    order by b.backfill_id desc
  `;
}

export async function backfillOf(db: Database, backfillId: number): Promise<Backfill> {
  const [backfill] = await listBackfills(db, { backfillId });
  if (backfill !== undefined) return backfill;
  throw new UsageError({
    code: "backfill_unknown",
    message: `Backfill ${backfillId} does not exist.`,
    next: "Run `usage-etl backfill list` to see all backfills.",
  });
}

export interface FailedTask extends Row<"usage.fetch_task", "groupBy" | "stride" | "workspaceIds"> {
  readonly from: string;
  readonly to: string;
  readonly code: string;
  readonly message: string;
}

export async function failedTasks(db: Database, backfillId: number): Promise<FailedTask[]> {
  return query<FailedTask>(db)`
    select group_by as "groupBy", stride, ${iso("period_start")} as "from",
           ${iso("period_end")} as "to", workspace_ids as "workspaceIds", code, message
    from usage.fetch_task where backfill_id = ${backfillId} and state = 'failed' order by task_id
  `;
}

/**
 * Marks running backfills without unfinished tasks as done, and returns their ids. Locks them first: if failed tasks were
 * retried meanwhile, the backfill would be done and nobody would enqueue them.
 */
export async function finishBackfills(store: Store): Promise<number[]> {
  const candidates = await unfinishedWithoutWork(store.db);
  if (candidates.length === 0) return [];
  return store.transaction(async ({ db }) => {
    const backfills = db.selectFrom("usage.backfill").where("backfill_id", "=", anyOf(candidates));
    await backfills.select("state").orderBy("backfill_id").forNoKeyUpdate().execute();
    // A separate statement under the locks sees what was committed before them.
    const empty = await unfinishedWithoutWork(db, candidates);
    const done = { state: "done", finished_at: NOW } as const;
    await db.updateTable("usage.backfill").set(done).where("backfill_id", "=", anyOf(empty)).execute();
    return empty;
  });
}

async function unfinishedWithoutWork(db: Database, among?: readonly number[]): Promise<number[]> {
  return queryValues<Backfill["backfillId"]>(db)`
    select b.backfill_id from usage.backfill b
    where b.state = 'running' and (${among === undefined} or b.backfill_id = any (${[...(among ?? [])]}::integer[]))
      and not exists (
        select from usage.fetch_task s where s.backfill_id = b.backfill_id and s.state in ('waiting', 'queued')
      )
    order by 1
  `;
}

export type Steering = "pause" | "resume" | "cancel" | "retry";

/**
 * Changes a backfill and records who ordered that, in one transaction. Errors: `backfill_unknown`; `backfill_finished` for a
 * cancelled backfill or, except for `retry`, a done one; `backfill_not_failed` if no fetch task has failed.
 */
export async function steerBackfill(
  store: Store,
  order: { backfillId: number; action: Steering; by: Actor },
): Promise<Backfill> {
  const { backfillId, action, by } = order;
  await store.transaction(async ({ db }) => {
    const chosen = db.selectFrom("usage.backfill").where("backfill_id", "=", backfillId);
    const row = await chosen.select(["state", "source_id"]).forUpdate().executeTakeFirst();
    if (row === undefined) return;
    if (row.state === "cancelled" || (row.state === "done" && action !== "retry")) {
      throw new UsageError({
        code: "backfill_finished",
        message: `Backfill ${backfillId} is ${row.state} and cannot be ${PAST[action]}.`,
        next: "Start another backfill. A new backfill fetches only missing days.",
      });
    }
    const tasks = await STEER[action](db, backfillId);
    await recordAction(db, by, {
      sourceId: row.source_id,
      action: `backfill.${action}`,
      detail: `backfill ${backfillId}: ${tasks} fetch tasks`,
    });
  });
  return backfillOf(store.db, backfillId);
}

const PAST = { pause: "paused", resume: "resumed", cancel: "cancelled", retry: "retried" } as const;

const STEER: Readonly<Record<Steering, (db: Database, backfillId: number) => Promise<number>>> = {
  cancel: async (db, backfillId) => {
    const cancelled = await change(db)`
      update usage.fetch_task set state = 'cancelled', leased_until = null, finished_at = now()
      where backfill_id = ${backfillId} and state in ('waiting', 'queued')
    `;
    const backfill = db.updateTable("usage.backfill").where("backfill_id", "=", backfillId);
    await backfill.set({ state: "cancelled", finished_at: NOW }).execute();
    return cancelled;
  },
  pause: async (db, backfillId) => {
    // Takes queued tasks back. A task that a worker has claimed runs to its end.
    const tasks = db.updateTable("usage.fetch_task").set({ state: "waiting", leased_until: null });
    await tasks
      .where((task) => task.and({ backfill_id: backfillId, state: "queued", open_claims: 0 }))
      .execute();
    return moveTo(db, { backfillId, state: "paused" });
  },
  resume: (db, backfillId) => moveTo(db, { backfillId, state: "running" }),
  retry: retryFailed,
};

async function moveTo(
  db: Database,
  { backfillId, state }: { backfillId: number; state: "paused" | "running" },
): Promise<number> {
  const [tasks] = await queryValues<number>(db)`
    with moved as (update usage.backfill set state = ${state} where backfill_id = ${backfillId})
    select count(*)::integer as tasks from usage.fetch_task where backfill_id = ${backfillId} and state in ('waiting', 'queued')
  `;
  return tasks ?? 0;
}

/**
 * Makes failed fetch tasks wait again without claims, and a done backfill run again. `created_at` is now, because the failure
 * may be newer than loads before. A paused backfill stays paused.
 */
async function retryFailed(db: Database, backfillId: number): Promise<number> {
  const tasks = await change(db)`
    update usage.fetch_task
    set state = 'waiting', code = null, message = null, finished_at = null, open_claims = 0, created_at = now()
    where backfill_id = ${backfillId} and state = 'failed'
  `;
  if (tasks === 0) {
    throw new UsageError({
      code: "backfill_not_failed",
      message: `Backfill ${backfillId} has no failed fetch task.`,
      next: `Run \`usage-etl backfill show ${backfillId}\` to see its state.`,
    });
  }
  await sql`
    update usage.backfill set state = case state when 'paused' then 'paused' else 'running' end, finished_at = null
    where backfill_id = ${backfillId}
  `.execute(db);
  // The run's reason is that of a failed task, which now waits again.
  const runs = db.updateTable("usage.run").where("backfill_id", "=", backfillId);
  await runs.set({ failed: 0, code: null, message: null }).execute();
  return tasks;
}

interface FailureGroup {
  readonly code: string;
  readonly tasks: number;
  readonly message: string;
  readonly ranges: readonly Omit<FailedTask, "code" | "message">[];
}

export async function failureGroups(
  db: Database,
  wanted: { backfillId: number; mostGroups: number; mostRanges: number },
): Promise<FailureGroup[]> {
  const { backfillId, mostGroups, mostRanges } = wanted;
  return query<FailureGroup>(db)`
    with failed as materialized (
      select coalesce(code, 'failed') as code, coalesce(message, '') as message, group_by, stride, period_start, period_end,
             workspace_ids, finished_at, task_id,
             row_number() over (partition by coalesce(code, 'failed') order by period_start, group_by, task_id) as n
      from usage.fetch_task where backfill_id = ${backfillId} and state = 'failed'
    )
    select code, count(*)::integer as tasks,
           coalesce((array_agg(message order by finished_at, task_id) filter (where message <> ''))[1], 'It failed with ' || code || '.')
             as message,
           json_agg(json_build_object(
             'groupBy', group_by, 'stride', stride, 'workspaceIds', workspace_ids,
             'from', ${iso("period_start")}, 'to', ${iso("period_end")}
           ) order by n) filter (where n <= ${mostRanges}) as ranges
    from failed group by code order by count(*) desc, code limit ${mostGroups}
  `;
}

/** Waiting and queued fetch tasks. `routine`: of syncs. `others`: of other backfills that are not paused. */
interface TasksAhead {
  readonly routine: number;
  readonly others: number;
}

export async function otherTasks(db: Database, backfillId: number): Promise<TasksAhead> {
  const rows = await query<TasksAhead>(db)`
    select count(*) filter (where s.backfill_id is null)::integer as routine,
           count(*) filter (where s.backfill_id <> ${backfillId} and o.state <> 'paused')::integer as others
    from usage.backfill b
    join usage.fetch_task s on s.source_id = b.source_id and s.state in ('waiting', 'queued')
    left join usage.backfill o on o.backfill_id = s.backfill_id
    where b.backfill_id = ${backfillId}
  `;
  return rows[0] ?? { routine: 0, others: 0 };
}
