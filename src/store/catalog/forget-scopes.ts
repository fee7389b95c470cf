import { sql } from "kysely";
import type { Database } from "../db/database.ts";

/** Tables by series, then by scope, each before those it refers to. */
const BY_SERIES = ["hourly_record", "dated_record", "monthly_total", "restatement"] as const;
const BY_SCOPE = [
  ...(["coverage", "failure", "became_final", "withdrawal", "reconciled", "matched_total"] as const),
  ...(["reconciliation_difference", "control_difference"] as const),
];

/** Removes scopes with all that is kept for them. The caller holds their locks. */
export async function forgetScopes(
  db: Database,
  { sourceId, scopeIds }: { sourceId: number; scopeIds: readonly number[] },
): Promise<void> {
  const ids = sql`${[...scopeIds]}::integer[]`;
  await forgetTasks(db, { sourceId, scopeIds });
  for (const table of BY_SERIES) {
    await sql`
      delete from ${sql.id("usage", table)} r using usage.series s
      where s.series_id = r.series_id and s.scope_id = any (${ids})
    `.execute(db);
  }
  for (const table of BY_SCOPE) {
    await sql`delete from ${sql.id("usage", table)} where scope_id = any (${ids})`.execute(db);
  }
  const { rows } = await sql<{ entity_id: number }>`
    delete from usage.series where scope_id = any (${ids}) returning entity_id
  `.execute(db);
  await forgetUnused(
    db,
    rows.map((row) => row.entity_id),
  );
  await sql`delete from usage.every_scope where scope_id = any (${ids})`.execute(db);
}

/**
 * Fetch tasks of a sync are planned again without these scopes. Those of a backfill lose them: what is queued waits anew, so
 * the end of a worker that holds it counts no more.
 */
async function forgetTasks(
  db: Database,
  { sourceId, scopeIds }: { sourceId: number; scopeIds: readonly number[] },
): Promise<void> {
  const ids = sql`${[...scopeIds]}::integer[]`;
  await sql`
    delete from usage.fetch_task
    where source_id = ${sourceId} and scope_ids && ${ids} and (backfill_id is null or scope_ids <@ ${ids})
  `.execute(db);
  await sql`
    update usage.fetch_task s
    set scope_ids = left_over.scope_ids, workspace_ids = left_over.workspace_ids, leased_until = null,
        state = case when s.state = 'queued' then 'waiting' else s.state end
    from usage.fetch_task t
    cross join lateral (
      select array_agg(u.scope_id order by u.n) as scope_ids, array_agg(u.workspace_id order by u.n) as workspace_ids
      from unnest(t.scope_ids, t.workspace_ids) with ordinality u (scope_id, workspace_id, n)
      where u.scope_id <> all (${ids})
    ) left_over
    where t.task_id = s.task_id and t.source_id = ${sourceId} and t.scope_ids && ${ids}
  `.execute(db);
}

/** Projects, users and keys that no series names any more. One that a load is about to name stays: it does no harm. */
async function forgetUnused(db: Database, entityIds: readonly number[]): Promise<void> {
  const { rows } = await sql<{ entity_id: number }>`
    select e.entity_id from usage.entity e
    where e.entity_id = any (${[...new Set(entityIds)]}::integer[]) and e.dimension <> 'workspace'
      and not exists (select from usage.series s where s.entity_id = e.entity_id)
    order by 1 for update skip locked
  `.execute(db);
  const unused = rows.map((row) => row.entity_id);
  await sql`delete from usage.entity_name where entity_id = any (${unused}::integer[])`.execute(db);
  await sql`delete from usage.entity where entity_id = any (${unused}::integer[])`.execute(db);
}
