import { sql } from "kysely";
import type { UsageRequest } from "../../domain/planning/request.ts";
import type { Stride } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import { UsageError } from "../../errors.ts";
import type { Database, Store } from "../db/database.ts";
import { beginRun } from "./runs.ts";
import { enterSlices } from "./slices.ts";

export interface Backfill {
  readonly backfillId: number;
  readonly source: string;
  readonly stride: Stride;
  /** ISO instants, UTC. */
  readonly from: string;
  readonly to: string;
  readonly groupings: readonly GroupBy[];
  readonly workspaces: number;
  /** Platform ids. */
  readonly workspaceIds: readonly string[];
  readonly reprocess: "missing" | "all";
  readonly state: "running" | "paused" | "cancelled" | "done";
  /** Why the platform refuses the key, so that nothing of it is fetched; null if it does not. */
  readonly refused: string | null;
  readonly createdAt: string;
  readonly finishedAt: string | null;
  readonly total: number;
  readonly done: number;
  readonly failed: number;
  readonly waiting: number;
}

/** Enters a backfill with all its slices in one transaction. A backfill without slices is done at once. */
export async function createBackfill(
  store: Store,
  wanted: Pick<Backfill, "stride" | "groupings" | "workspaceIds" | "reprocess"> & {
    sourceId: number;
    range: Interval;
    slices: readonly UsageRequest[];
  },
): Promise<number> {
  const { sourceId, range, stride, groupings, workspaceIds, reprocess, slices } = wanted;
  return store.transaction(async ({ db }) => {
    const { backfill_id } = await db
      .insertInto("backfill")
      .values({
        ...{ source_id: sourceId, stride, groupings: [...groupings], reprocess },
        ...{ workspaces: workspaceIds.length, workspace_ids: [...workspaceIds] },
        period_start: new Date(range.start),
        period_end: new Date(range.end),
        ...(slices.length === 0 ? { state: "done", finished_at: sql<Date>`now()` } : {}),
      })
      .returning("backfill_id")
      .executeTakeFirstOrThrow();
    const runId = await beginRun(db, { sourceId, kind: "backfill", backfillId: backfill_id });
    await enterSlices(db, { sourceId, backfillId: backfill_id, runId, slices });
    return backfill_id;
  });
}

/** Backfills with their progress, counted from their slices. The newest comes first. */
export async function listBackfills(db: Database, backfillId?: number): Promise<Backfill[]> {
  const { rows } = await sql<Backfill>`
    select b.backfill_id as "backfillId", s.slug as source, b.stride, b.groupings, b.workspaces, b.reprocess, b.state,
           s.refused_message as refused,
           -- A backfill of an earlier release does not name its workspaces.
           coalesce(b.workspace_ids, array(
             select distinct unnest(w.workspace_ids) from usage.slice w where w.backfill_id = b.backfill_id
           )) as "workspaceIds",
           to_char(b.period_start at time zone 'UTC', ${ISO}) as "from", to_char(b.period_end at time zone 'UTC', ${ISO}) as "to",
           to_char(b.created_at at time zone 'UTC', ${ISO}) as "createdAt",
           to_char(b.finished_at at time zone 'UTC', ${ISO}) as "finishedAt",
           count(w.slice_id)::integer as total,
           count(w.slice_id) filter (where w.state = 'done')::integer as done,
           count(w.slice_id) filter (where w.state = 'failed')::integer as failed,
           count(w.slice_id) filter (where w.state in ('waiting', 'queued'))::integer as waiting
    from usage.backfill b
    join usage.source s using (source_id)
    left join usage.slice w using (backfill_id)
    where ${backfillId ?? null}::integer is null or b.backfill_id = ${backfillId ?? null}
    group by b.backfill_id, s.source_id
    order by b.backfill_id desc
  `.execute(db);
  return rows;
}

const ISO = 'YYYY-MM-DD"T"HH24:MI:SS"Z"';

/** One backfill. Errors: `backfill_unknown`. */
export async function backfillOf(db: Database, backfillId: number): Promise<Backfill> {
  const [backfill] = await listBackfills(db, backfillId);
  if (backfill !== undefined) return backfill;
  throw new UsageError({
    code: "backfill_unknown",
    message: `There is no backfill ${backfillId}.`,
    next: "Run `usage-etl backfill list` to see all backfills.",
  });
}

export interface FailedSlice {
  readonly groupBy: GroupBy;
  readonly stride: Stride;
  readonly from: string;
  readonly to: string;
  readonly workspaceIds: readonly string[];
  readonly code: string;
  readonly message: string;
}

export async function failedSlices(db: Database, backfillId: number): Promise<FailedSlice[]> {
  const { rows } = await sql<FailedSlice>`
    select group_by as "groupBy", stride, to_char(period_start at time zone 'UTC', ${ISO}) as "from",
           to_char(period_end at time zone 'UTC', ${ISO}) as "to", workspace_ids as "workspaceIds",
           coalesce(code, 'failed') as code,
           -- A task that an earlier release ended may have no message.
           coalesce(nullif(message, ''), 'It failed with ' || coalesce(code, 'an error without a name') || '.') as message
    from usage.slice where backfill_id = ${backfillId} and state = 'failed' order by slice_id
  `.execute(db);
  return rows;
}

/** Pauses, resumes or cancels a backfill. Errors: `backfill_unknown`, and `backfill_finished` for a finished one. */
export async function steerBackfill(
  store: Store,
  order: { backfillId: number; action: "pause" | "resume" | "cancel" },
): Promise<Backfill> {
  const { backfillId, action } = order;
  await store.transaction(async ({ db }) => {
    const row = await db
      .selectFrom("backfill")
      .select("state")
      .where("backfill_id", "=", backfillId)
      .forUpdate()
      .executeTakeFirst();
    if (row === undefined) return;
    if (row.state === "cancelled" || row.state === "done") {
      throw new UsageError({
        code: "backfill_finished",
        message: `Backfill ${backfillId} is ${row.state} and cannot be ${PAST[action]}.`,
        next: "Start another backfill. It fetches only what is missing.",
      });
    }
    if (action === "cancel") {
      await sql`
        update usage.slice set state = 'cancelled', leased_until = null, finished_at = now()
        where backfill_id = ${backfillId} and state in ('waiting', 'queued')
      `.execute(db);
      await sql`
        update usage.backfill set state = 'cancelled', finished_at = now() where backfill_id = ${backfillId}
      `.execute(db);
      return;
    }
    if (action === "pause") {
      // Queued slices are taken back. A slice that a worker holds runs to its end.
      await sql`
        update usage.slice set state = 'waiting', leased_until = null
        where backfill_id = ${backfillId} and state = 'queued' and attempts = 0
      `.execute(db);
    }
    const state = action === "pause" ? "paused" : "running";
    await db.updateTable("backfill").set({ state }).where("backfill_id", "=", backfillId).execute();
  });
  return backfillOf(store.db, backfillId);
}

const PAST = { pause: "paused", resume: "resumed", cancel: "cancelled" } as const;

/** Marks running backfills without unfinished slices as done, and returns their ids. */
export async function finishBackfills(db: Database): Promise<number[]> {
  const { rows } = await sql<{ backfill_id: number }>`
    update usage.backfill b set state = 'done', finished_at = now()
    where b.state = 'running' and not exists (
      select from usage.slice s where s.backfill_id = b.backfill_id and s.state in ('waiting', 'queued')
    )
    returning b.backfill_id
  `.execute(db);
  return rows.map((row) => row.backfill_id);
}
