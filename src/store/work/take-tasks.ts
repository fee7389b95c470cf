import { sql } from "kysely";
import type { Database } from "../db/database.ts";
import { LEASE, type StoredTask } from "./tasks.ts";

/** The share of free places for the tasks of the routine that have waited longest. */
const SHARE_OF_OLDEST = 0.25;

/** The order of the index `fetch_task_next` (0107), behind its source and backfill. */
const NEXT_FIRST = sql`(w.group_by <> 'workspace'), w.period_start desc`;

/**
 * Takes the next waiting tasks for the queue, up to `most` queued tasks of a source: the routine before backfills, the
 * workspace dimension before the others, newest first. A share goes to the tasks that have waited longest. Without it,
 * each sync would enter time that is not final again, and that could use up the whole request rate limit for good. Needs a
 * transaction, so that only one caller enqueues at a time. Returns them in this order.
 *
 * It reads as many tasks as there are places, of the routine, of its oldest and of each backfill that runs: hundreds of
 * thousands may wait.
 */
export async function takeSlicesToQueue(
  db: Database,
  { sourceId, most }: { sourceId: number; most: number },
): Promise<Pick<StoredTask, "taskId" | "generation" | "backfillId">[]> {
  // Two callers that count at once would each fill the queue (test/integration/service/backfill.test.ts).
  const source = await sql<{ isRefused: boolean }>`
    select refused_at is not null as "isRefused" from usage.source where source_id = ${sourceId} for no key update
  `.execute(db);
  if (source.rows[0]?.isRefused !== false) return [];
  const { rows: queued } = await sql<{ count: number }>`
    select count(*)::integer as count from usage.fetch_task where source_id = ${sourceId} and state = 'queued'
  `.execute(db);
  const places = most - (queued[0]?.count ?? 0);
  if (places <= 0) return [];
  // If few places become free at a time, chance grants one of them now and then.
  const oldest = Math.floor(places * SHARE_OF_OLDEST + Math.random());
  // As literals: with parameters, Postgres would have to plan for any number of places.
  const limit = sql.lit(places);
  const { rows } = await sql<{
    taskId: number;
    generation: number;
    backfillId: number | null;
    turn: number;
  }>`
    with next as (
      select task_id, row_number() over (order by min(array[rank, place])) as turn
      from (
        select task_id, 0 as rank, row_number() over () as place
        from (
          select w.task_id from usage.fetch_task w
          where w.source_id = ${sourceId} and w.state = 'waiting' and w.backfill_id is null
          order by w.created_at, w.period_start desc, w.task_id
          limit ${sql.lit(oldest)}
        ) of_oldest
        union all
        select task_id, 1, row_number() over ()
        from (
          select w.task_id from usage.fetch_task w
          where w.source_id = ${sourceId} and w.state = 'waiting' and w.backfill_id is null
          -- It is null in each. Named, the order is that of the index.
          order by w.backfill_id, ${NEXT_FIRST}
          limit ${limit}
        ) of_routine
        union all
        select o.task_id, 2, row_number() over (order by o.other, o.period_start desc)
        from usage.backfill b
        cross join lateral (
          select w.task_id, (w.group_by <> 'workspace') as other, w.period_start from usage.fetch_task w
          where w.source_id = ${sourceId} and w.backfill_id = b.backfill_id and w.state = 'waiting'
          order by ${NEXT_FIRST}
          limit ${limit}
        ) o
        where b.source_id = ${sourceId} and b.state = 'running'
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
  `.execute(db);
  return rows
    .sort((one, other) => one.turn - other.turn)
    .map(({ taskId, generation, backfillId }) => ({
      taskId,
      generation,
      backfillId: backfillId ?? undefined,
    }));
}
