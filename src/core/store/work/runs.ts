import { sql } from "kysely";
import { CLOCK } from "../db/expressions.ts";
import type { Database, Row } from "../db/query.ts";

export const RUN_KINDS = ["sync", "backfill", "reconcile", "totals", "files"] as const;
export type RunKind = (typeof RUN_KINDS)[number];

/** `differs`: all figures were compared, and some differ. */
export interface RunEnd {
  readonly outcome: NonNullable<Row<"usage.run">["outcome"]>;
  readonly tasks?: number | undefined;
  /** Failed parts without the fetch tasks that `noteTaskFailed` counted. */
  readonly failed?: number | undefined;
  readonly code?: string | undefined;
  readonly message?: string | undefined;
}

export async function beginRun(
  db: Database,
  { sourceId, kind, backfillId }: { sourceId: number; kind: RunKind; backfillId?: number },
): Promise<number> {
  const seen_at = backfillId === undefined ? CLOCK : null;
  const { run_id } = await db
    .insertInto("usage.run")
    .values({ source_id: sourceId, kind, backfill_id: backfillId ?? null, seen_at })
    .returning("run_id")
    .executeTakeFirstOrThrow();
  return run_id;
}

/**
 * Records every `everyMs` that a run's process is alive, until the returned function is called. Ignores errors, because the
 * work itself meets them.
 */
export function keepSeen(db: Database, runId: number, { everyMs }: { everyMs: number }): () => Promise<void> {
  let noting: Promise<unknown> | undefined;
  const note = () => {
    // These statements do not queue up while Postgres is slow.
    noting ??= db
      .updateTable("usage.run")
      .set({ seen_at: CLOCK })
      .where("run_id", "=", runId)
      .execute()
      .catch(() => {})
      .finally(() => {
        noting = undefined;
      });
  };
  const timer = setInterval(note, everyMs).unref();
  return async () => {
    clearInterval(timer);
    await noting;
  };
}

/** Without a reason of its own, a run gets that of its last failed request. */
export async function endRun(db: Database, runId: number, end: RunEnd): Promise<void> {
  const { outcome, tasks = null, failed = 0, code = null, message = null } = end;
  const isDone = outcome === "done";
  await sql`
    update usage.run r
    set finished_at = clock_timestamp(), outcome = ${outcome}, tasks = ${tasks}::integer, failed = r.failed + ${failed}::integer,
        code = coalesce(${code}, r.code, f.code),
        message = coalesce(${message}, r.message, f.message)
    from (values (1)) one
    left join lateral (
      select f.code, 'A request ended with ' || f.code || coalesce(' (HTTP ' || f.status || ')', '') || '.' as message
      from usage.fetch f
      where f.run_id = ${runId} and f.code is not null and not ${isDone}::boolean
      order by f.fetch_number desc limit 1
    ) f on true
    where r.run_id = ${runId}
  `.execute(db);
}

export async function noteTaskFailed(
  db: Database,
  { runId, code, message }: { runId: number | undefined; code: string; message: string },
): Promise<void> {
  if (runId === undefined) return;
  const failed = sql<number>`failed + 1`;
  await db.updateTable("usage.run").set({ code, message, failed }).where("run_id", "=", runId).execute();
}

export async function pruneRuns(
  db: Database,
  { sourceId, keepDays }: { sourceId: number; keepDays: number },
): Promise<void> {
  const since = sql<Date>`now() - make_interval(days => ${keepDays})`;
  const runs = db.deleteFrom("usage.run").where("source_id", "=", sourceId);
  await runs.where("started_at", "<", since).execute();
}
