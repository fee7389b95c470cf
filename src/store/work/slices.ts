import { sql } from "kysely";
import { scopeIdsOf, type UsageRequest, workspaceIdsOf } from "../../domain/planning/request.ts";
import type { Stride } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import type { Database } from "../db/database.ts";

/** A slice as a row of work. */
export interface StoredSlice extends UsageRequest {
  readonly sliceId: number;
  readonly sourceId: number;
  readonly backfillId: number | undefined;
  /** How often it was fed to the queue, part of its job's id. */
  readonly generation: number;
  /** How often a worker took it. */
  readonly attempts: number;
}

/** How long a slice may wait in the queue, or be at work without a sign of life, before it is fed again. */
const LEASE = sql`interval '10 minutes'`;

/** Enters slices to be fed. One of the routine that is already there is left as it is. Returns how many are new. */
export async function enterSlices(
  db: Database,
  work: { sourceId: number; backfillId?: number | undefined; slices: readonly UsageRequest[] },
): Promise<number> {
  let entered = 0;
  // An array of arrays has one shape in Postgres, so the id lists travel as JSON; 500 rows keep a statement small.
  for (let first = 0; first < work.slices.length; first += 500) {
    const rows = work.slices.slice(first, first + 500).map((slice) => ({
      group_by: slice.groupBy,
      stride: slice.window.stride,
      period_start: new Date(slice.window.start).toISOString(),
      period_end: new Date(slice.window.end).toISOString(),
      scope_ids: scopeIdsOf(slice),
      workspace_ids: workspaceIdsOf(slice),
    }));
    const result = await sql`
      insert into usage.slice (source_id, backfill_id, group_by, stride, period_start, period_end, scope_ids, workspace_ids)
      select ${work.sourceId}, ${work.backfillId ?? null}::integer, r.group_by, r.stride, r.period_start, r.period_end,
             r.scope_ids, r.workspace_ids
      from json_to_recordset(${JSON.stringify(rows)}::json) r (
        group_by text, stride text, period_start timestamptz, period_end timestamptz,
        scope_ids integer[], workspace_ids text[]
      )
      on conflict do nothing
    `.execute(db);
    entered += Number(result.numAffectedRows ?? 0);
  }
  return entered;
}

/** Parts of each scope's time that are in flight: in the queue, or waiting for it and not paused. */
export async function slicesInFlight(db: Database, sourceId: number): Promise<Map<number, Interval[]>> {
  const { rows } = await sql<{ scope_id: number; period_start: Date; period_end: Date }>`
    select unnest(s.scope_ids) as scope_id, s.period_start, s.period_end
    from usage.slice s left join usage.backfill b using (backfill_id)
    where s.source_id = ${sourceId}
      and (s.state = 'queued' or (s.state = 'waiting' and b.state is distinct from 'paused'))
  `.execute(db);
  const parts = new Map<number, Interval[]>();
  for (const row of rows) {
    const part = { start: row.period_start.getTime(), end: row.period_end.getTime() };
    parts.set(row.scope_id, [...(parts.get(row.scope_id) ?? []), part]);
  }
  return parts;
}

/** Of the places that are fed, so much is the routine's longest waiting slices'. */
const SHARE_OF_OLDEST = 0.25;

/**
 * Takes the next waiting slices for the queue, so that at most `most` of a source stand in it: the routine before
 * backfills, by workspace before the other groupings, newest first. A share goes to what has waited longest: each round
 * enters unsettled time anew, and where it takes the whole rate budget, nothing older would ever be fed. In a
 * transaction: others that feed wait for its end.
 */
export async function takeSlicesToQueue(
  db: Database,
  feed: { sourceId: number; most: number },
): Promise<Pick<StoredSlice, "sliceId" | "generation" | "backfillId">[]> {
  // Two that count at once would each fill the queue (test/integration/service/backfill.test.ts).
  await sql`select from usage.source where source_id = ${feed.sourceId} for no key update`.execute(db);
  const { rows } = await sql<{ slice_id: number; generation: number; backfill_id: number | null }>`
    with free as (
      select greatest(0, ${feed.most} - count(*))::integer as places
      from usage.slice where source_id = ${feed.sourceId} and state = 'queued'
    ), oldest as (
      select slice_id from usage.slice
      where source_id = ${feed.sourceId} and state = 'waiting' and backfill_id is null
      order by created_at, period_start desc, slice_id
      -- Where few places come free at a time, chance gives a share of one now and then.
      limit (select floor(places * ${SHARE_OF_OLDEST}::float8 + random())::integer from free)
    )
    update usage.slice s
    set state = 'queued', generation = s.generation + 1, leased_until = now() + ${LEASE}
    from (
      select w.slice_id
      from usage.slice w
      left join usage.backfill b using (backfill_id)
      where w.source_id = ${feed.sourceId} and w.state = 'waiting' and (b.state is null or b.state = 'running')
        and not exists (
          select from usage.source r where r.source_id = w.source_id and r.refused_at is not null
        )
      order by (w.backfill_id is not null), (w.slice_id not in (select slice_id from oldest)),
               (w.group_by <> 'workspace'), w.period_start desc
      limit (select places from free)
      for update of w skip locked
    ) next
    where s.slice_id = next.slice_id
    returning s.slice_id, s.generation, s.backfill_id
  `.execute(db);
  return rows.map((row) => ({
    sliceId: row.slice_id,
    generation: row.generation,
    backfillId: row.backfill_id ?? undefined,
  }));
}

/** Takes a slice for a worker, or undefined where this feeding of it is over (done, fed again, cancelled). */
export async function claimSlice(
  db: Database,
  claim: { sliceId: number; generation: number },
): Promise<StoredSlice | undefined> {
  const { rows } = await sql<{
    slice_id: number;
    source_id: number;
    backfill_id: number | null;
    group_by: GroupBy;
    stride: Stride;
    period_start: Date;
    period_end: Date;
    scope_ids: number[];
    workspace_ids: string[];
    generation: number;
    attempts: number;
  }>`
    update usage.slice set attempts = attempts + 1, leased_until = now() + ${LEASE}
    where slice_id = ${claim.sliceId} and generation = ${claim.generation} and state = 'queued'
    returning *
  `.execute(db);
  const row = rows[0];
  if (row === undefined) return undefined;
  return {
    sliceId: row.slice_id,
    sourceId: row.source_id,
    backfillId: row.backfill_id ?? undefined,
    groupBy: row.group_by,
    window: { stride: row.stride, start: row.period_start.getTime(), end: row.period_end.getTime() },
    members: row.workspace_ids.map((workspaceId, i) => ({
      workspaceId,
      scopeId: row.scope_ids[i] as number,
    })),
    generation: row.generation,
    attempts: row.attempts,
  };
}

/** Whether all that a slice asks for was fetched after it was entered: then its work is done, though nobody said so. */
export async function isLoadedAlready(db: Database, sliceId: number): Promise<boolean> {
  const { rows } = await sql<{ loaded: boolean }>`
    select coalesce(bool_and(c.loaded @> tstzrange(s.period_start, s.period_end)), false) as loaded
    from usage.slice s
    cross join unnest(s.scope_ids) u (scope_id)
    cross join lateral (
      select coalesce(range_agg(tstzrange(v.period_start, v.period_end)), '{}') as loaded
      from usage.coverage v
      where v.scope_id = u.scope_id and v.fetched_at >= s.created_at
        and v.period_start < s.period_end and v.period_end > s.period_start
    ) c
    where s.slice_id = ${sliceId}
  `.execute(db);
  return rows[0]?.loaded ?? false;
}

/** Ends a slice: one of the routine is gone, one of a backfill is kept as done or failed with its reason. */
export async function endSlice(
  db: Database,
  end: {
    slice: StoredSlice;
    state: "done" | "failed";
    code?: string | undefined;
    message?: string | undefined;
  },
): Promise<void> {
  const { slice, state } = end;
  const ended = db
    .selectFrom("slice")
    .select("slice_id")
    .where("slice_id", "=", slice.sliceId)
    .where("generation", "=", slice.generation)
    .where("state", "=", "queued");
  if (slice.backfillId === undefined) {
    await db.deleteFrom("slice").where("slice_id", "in", ended).execute();
    return;
  }
  await db
    .updateTable("slice")
    .set({
      state,
      code: end.code ?? null,
      message: end.message ?? null,
      leased_until: null,
      finished_at: sql<Date>`now()`,
    })
    .where("slice_id", "in", ended)
    .execute();
}

/** Puts slices back to wait, to be fed again under a new generation. */
export async function releaseSlices(db: Database, sliceIds: readonly number[]): Promise<void> {
  await sql`
    update usage.slice set state = 'waiting', leased_until = null
    where slice_id = any (${[...sliceIds]}::bigint[]) and state = 'queued'
  `.execute(db);
}

/** The slices that Postgres holds for queued; `expired` where the lease has run out. */
export async function queuedSlices(
  db: Database,
  sourceId: number,
): Promise<{ sliceId: number; generation: number; expired: boolean }[]> {
  const { rows } = await sql<{ slice_id: number; generation: number; expired: boolean }>`
    select slice_id, generation, leased_until < now() as expired
    from usage.slice where source_id = ${sourceId} and state = 'queued'
  `.execute(db);
  return rows.map((row) => ({ sliceId: row.slice_id, generation: row.generation, expired: row.expired }));
}

/** Slices waiting and queued of a source, and how long the oldest has been due. */
export async function dueSlices(
  db: Database,
): Promise<{ source: string; waiting: number; queued: number; oldestSeconds: number }[]> {
  const { rows } = await sql<{ source: string; waiting: number; queued: number; oldestSeconds: number }>`
    select s.slug as source,
           count(w.slice_id) filter (where w.state = 'waiting')::integer as waiting,
           count(w.slice_id) filter (where w.state = 'queued')::integer as queued,
           coalesce(extract(epoch from now() - min(w.created_at)), 0)::integer as "oldestSeconds"
    from usage.source s
    left join usage.slice w on w.source_id = s.source_id and w.state in ('waiting', 'queued')
    group by s.slug order by s.slug
  `.execute(db);
  return rows;
}
