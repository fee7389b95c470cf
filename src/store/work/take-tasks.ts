import { sql } from "kysely";
import type { Database } from "../db/database.ts";
import { LEASE, type StoredSlice } from "./tasks.ts";

/** The share of free places for the slices of the routine that have waited longest. */
const SHARE_OF_OLDEST = 0.25;

/** The order of the index `slice_next` (0107), behind its source and backfill. */
const NEXT_FIRST = sql`(w.group_by <> 'workspace'), w.period_start desc`;

/**
 * Takes the next waiting slices for the queue, up to `most` queued slices of a source: the routine before backfills, the
 * workspace dimension before the others, newest first. A share goes to the slices that have waited longest. Without it,
 * each sync would enter unsettled time again, and that could use up the whole request rate limit for good. Needs a
 * transaction, so that only one caller enqueues at a time. Returns them in this order.
 *
 * It reads as many slices as there are places, of the routine, of its oldest and of each backfill that runs: hundreds of
 * thousands may wait.
 */
export async function takeSlicesToQueue(
  db: Database,
  { sourceId, most }: { sourceId: number; most: number },
): Promise<Pick<StoredSlice, "sliceId" | "generation" | "backfillId">[]> {
  // Two callers that count at once would each fill the queue (test/integration/service/backfill.test.ts).
  const source = await sql<{ isRefused: boolean }>`
    select refused_at is not null as "isRefused" from usage.source where source_id = ${sourceId} for no key update
  `.execute(db);
  if (source.rows[0]?.isRefused !== false) return [];
  const { rows: queued } = await sql<{ count: number }>`
    select count(*)::integer as count from usage.slice where source_id = ${sourceId} and state = 'queued'
  `.execute(db);
  const places = most - (queued[0]?.count ?? 0);
  if (places <= 0) return [];
  // If few places become free at a time, chance grants one of them now and then.
  const oldest = Math.floor(places * SHARE_OF_OLDEST + Math.random());
  // As literals: with parameters, Postgres would have to plan for any number of places.
  const limit = sql.lit(places);
  const { rows } = await sql<{
    sliceId: number;
    generation: number;
    backfillId: number | null;
    turn: number;
  }>`
    with next as (
      select slice_id, row_number() over (order by min(array[rank, place])) as turn
      from (
        select slice_id, 0 as rank, row_number() over () as place
        from (
          select w.slice_id from usage.slice w
          where w.source_id = ${sourceId} and w.state = 'waiting' and w.backfill_id is null
          order by w.created_at, w.period_start desc, w.slice_id
          limit ${sql.lit(oldest)}
        ) of_oldest
        union all
        select slice_id, 1, row_number() over ()
        from (
          select w.slice_id from usage.slice w
          where w.source_id = ${sourceId} and w.state = 'waiting' and w.backfill_id is null
          -- It is null in each. Named, the order is that of the index.
          order by w.backfill_id, ${NEXT_FIRST}
          limit ${limit}
        ) of_routine
        union all
        select o.slice_id, 2, row_number() over (order by o.other, o.period_start desc)
        from usage.backfill b
        cross join lateral (
          select w.slice_id, (w.group_by <> 'workspace') as other, w.period_start from usage.slice w
          where w.source_id = ${sourceId} and w.backfill_id = b.backfill_id and w.state = 'waiting'
          order by ${NEXT_FIRST}
          limit ${limit}
        ) o
        where b.source_id = ${sourceId} and b.state = 'running'
      ) waiting
      group by slice_id
      order by turn
      limit ${limit}
    )
    update usage.slice s
    set state = 'queued', generation = s.generation + 1, leased_until = now() + ${LEASE}
    from (
      select w.slice_id, next.turn from usage.slice w join next using (slice_id)
      where w.state = 'waiting'
      order by next.turn
      for update of w skip locked
    ) free
    where s.slice_id = free.slice_id
    returning s.slice_id as "sliceId", s.generation, s.backfill_id as "backfillId", free.turn::integer
  `.execute(db);
  return rows
    .sort((one, other) => one.turn - other.turn)
    .map(({ sliceId, generation, backfillId }) => ({
      sliceId,
      generation,
      backfillId: backfillId ?? undefined,
    }));
}
