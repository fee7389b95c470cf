import { type QueryResult, sql } from "kysely";
import { UsageError } from "../../errors.ts";
import type { Database, Store } from "../db/database.ts";
import { type Backfill, backfillOf } from "./backfills.ts";
import { type Actor, recordAction } from "./operator-actions.ts";

export type Steering = "pause" | "resume" | "cancel" | "retry";

/**
 * Pauses, resumes or cancels a backfill, or has its failed fetch tasks wait again. The order and who gave it commit together.
 *
 * Errors: `backfill_unknown`; `backfill_finished` for one that is cancelled or, but for `retry`, done; `backfill_not_failed` where
 * no fetch task has failed.
 */
export async function steerBackfill(
  store: Store,
  order: { backfillId: number; action: Steering; by: Actor },
): Promise<Backfill> {
  const { backfillId, action, by } = order;
  await store.transaction(async ({ db }) => {
    const row = await db
      .selectFrom("backfill")
      .select(["state", "source_id"])
      .where("backfill_id", "=", backfillId)
      .forUpdate()
      .executeTakeFirst();
    if (row === undefined) return;
    if (row.state === "cancelled" || (row.state === "done" && action !== "retry")) {
      throw new UsageError({
        code: "backfill_finished",
        message: `Backfill ${backfillId} is ${row.state} and cannot be ${PAST[action]}.`,
        next: "Start another backfill. It fetches only what is missing.",
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

/** Each returns how many fetch tasks it concerns. */
const STEER: Readonly<Record<Steering, (db: Database, backfillId: number) => Promise<number>>> = {
  cancel: async (db, backfillId) => {
    const cancelled = await sql`
      update usage.fetch_task set state = 'cancelled', leased_until = null, finished_at = now()
      where backfill_id = ${backfillId} and state in ('waiting', 'queued')
    `.execute(db);
    await sql`
      update usage.backfill set state = 'cancelled', finished_at = now() where backfill_id = ${backfillId}
    `.execute(db);
    return countOf(cancelled);
  },
  pause: async (db, backfillId) => {
    // Queued tasks are taken back. A task that a worker holds runs to its end.
    await sql`
      update usage.fetch_task set state = 'waiting', leased_until = null
      where backfill_id = ${backfillId} and state = 'queued' and attempts = 0
    `.execute(db);
    return moveTo(db, { backfillId, state: "paused" });
  },
  resume: (db, backfillId) => moveTo(db, { backfillId, state: "running" }),
  retry: retryFailed,
};

/** Returns how many fetch tasks wait. */
async function moveTo(
  db: Database,
  { backfillId, state }: { backfillId: number; state: "paused" | "running" },
): Promise<number> {
  const { rows } = await sql<{ tasks: number }>`
    with moved as (update usage.backfill set state = ${state} where backfill_id = ${backfillId})
    select count(*)::integer as tasks from usage.fetch_task where backfill_id = ${backfillId} and state in ('waiting', 'queued')
  `.execute(db);
  return rows[0]?.tasks ?? 0;
}

function countOf({ numAffectedRows }: QueryResult<unknown>): number {
  return Number(numAffectedRows ?? 0);
}

/**
 * Failed fetch tasks wait again, with their attempts and claims forgotten, and a backfill that was done is running again. It
 * began to wait now: what was loaded before does not do, since the failure may be newer. One that is paused stays paused.
 */
async function retryFailed(db: Database, backfillId: number): Promise<number> {
  const waiting = await sql`
    update usage.fetch_task
    set state = 'waiting', code = null, message = null, finished_at = null, attempts = 0, open_claims = 0, created_at = now()
    where backfill_id = ${backfillId} and state = 'failed'
  `.execute(db);
  const tasks = countOf(waiting);
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
  // The reason of the run was that of tasks that wait again.
  await sql`
    update usage.run set failed = 0, code = null, message = null where backfill_id = ${backfillId}
  `.execute(db);
  return tasks;
}
