import { type RawBuilder, sql } from "kysely";
import type { Database } from "../db/query.ts";
import { notingCharges } from "../months/charges.ts";

/**
 * Writes `usage.workspace`. All loads write to its rows, so no transaction may lock them for more than one statement. Each
 * change locks in key order, to prevent deadlocks. Which workspaces exist, are listed or are deleted decides which days are
 * expected, so such a change makes charges due.
 */

export async function createWorkspaces(
  db: Database,
  { sourceId, workspaceIds }: { sourceId: number; workspaceIds: readonly string[] },
): Promise<void> {
  const sorted = [...new Set(workspaceIds)].sort();
  await sql`
    insert into usage.entity (source_id, dimension, external_id)
    select ${sourceId}, 'workspace', id from unnest(${sorted}::text[]) id
    on conflict do nothing
  `.execute(db);
  await notingCharges(sql`
    insert into usage.workspace (entity_id)
    select entity_id from usage.entity
    where source_id = ${sourceId} and dimension = 'workspace' and external_id = any (${sorted}::text[])
    order by entity_id
    on conflict do nothing
    returning ${sourceId}::smallint as source_id
  `).execute(db);
}

/** Stores that a listing requested at `at` names these workspaces, some as deleted. Absence from a newer listing stays. */
export async function noteListed(
  db: Database,
  listed: {
    sourceId: number;
    workspaces: readonly { readonly workspaceId: string; readonly isDeleted: boolean }[];
    at: number;
  },
): Promise<void> {
  const { sourceId, workspaces } = listed;
  const at = new Date(listed.at);
  await notingCharges(sql`
    with locked as (
      select w.entity_id, w.unlisted_since, w.is_deleted, l.deleted, coalesce(w.unlisted_since <= ${at}, true) as is_news
      from usage.workspace w
      join usage.entity e on e.entity_id = w.entity_id
      join unnest(
        ${workspaces.map((w) => w.workspaceId)}::text[], ${workspaces.map((w) => w.isDeleted)}::boolean[]
      ) l (id, deleted) on l.id = e.external_id
      where e.source_id = ${sourceId}
      order by w.entity_id
      for no key update of w
    )
    update usage.workspace w
    set unlisted_since = case when is_news then null else w.unlisted_since end, is_deleted = deleted
    from locked
    where locked.entity_id = w.entity_id
    returning case
      when (w.unlisted_since, w.is_deleted) is distinct from (locked.unlisted_since, locked.is_deleted)
        then ${sourceId}::smallint
    end as source_id
  `).execute(db);
}

/** Ends proof of access that is not newer than `at`. `isUnlisted`: a listing requested at `at` lacks the workspaces. */
export async function endAccess(
  db: Database,
  ended: { sourceId: number; entityIds: readonly number[]; at: number; isUnlisted: boolean },
): Promise<void> {
  const { sourceId, isUnlisted } = ended;
  const at = new Date(ended.at);
  await notingCharges(sql`
    with locked as (
      select entity_id, unlisted_since from usage.workspace where entity_id = any (${ended.entityIds}::integer[])
      order by 1 for no key update
    )
    update usage.workspace w
    set readable_at = null, readable_since = ${at},
        unlisted_since = case when ${isUnlisted} then coalesce(w.unlisted_since, ${at}) else w.unlisted_since end
    from locked
    where locked.entity_id = w.entity_id and (w.readable_at is null or w.readable_at <= ${at})
    returning case when w.unlisted_since is distinct from locked.unlisted_since then ${sourceId}::smallint end as source_id
  `).execute(db);
}

/**
 * Stores proof of access by a response that was requested at `at`. Access that was lost later stays lost. `proven` selects ids
 * of workspaces. `usedBefore`: value of that column, null if no traces named them. `receivedAt`: since when access is proven if
 * it was not before.
 */
export async function proveAccess(
  db: Database,
  proof: {
    at: number;
    receivedAt: RawBuilder<Date>;
    proven: RawBuilder<unknown>;
    usedBefore: RawBuilder<Date>;
  },
): Promise<void> {
  const { receivedAt, proven, usedBefore } = proof;
  const at = new Date(proof.at);
  // Unchanged rows stay unlocked.
  await sql`
    with proven (entity_id) as (${proven}), locked as (
      select w.entity_id, n.is_newer
      from usage.workspace w
      join proven using (entity_id)
      cross join lateral (
        select (w.unlisted_since is null or w.unlisted_since <= ${at})
                 and (w.readable_since is null or w.readable_since <= ${at})
                 and (w.readable_at is null or w.readable_at < ${at}) as is_newer
      ) n
      where n.is_newer or w.used_before is distinct from least(w.used_before, ${usedBefore})
      order by w.entity_id
      for no key update of w
    )
    update usage.workspace w
    set readable_at = case when is_newer then ${at} else w.readable_at end,
        readable_since = case when is_newer and w.readable_at is null then ${receivedAt} else w.readable_since end,
        used_before = least(w.used_before, ${usedBefore})
    from locked
    where locked.entity_id = w.entity_id
  `.execute(db);
}

/** After the data start moved later, responses may lack workspaces that had usage only before it. */
export async function expectNoNames(db: Database, sourceId: number): Promise<void> {
  await sql`
    with locked as (
      select w.entity_id from usage.workspace w join usage.entity e using (entity_id)
      where e.source_id = ${sourceId} and w.used_before is not null
      order by 1 for no key update of w
    )
    update usage.workspace w set used_before = null from locked where locked.entity_id = w.entity_id
  `.execute(db);
}

export async function noteTagsRead(db: Database, entityId: number, day: string): Promise<void> {
  const unread = db.updateTable("usage.workspace").where("tags_since", "is", null);
  await unread.set({ tags_since: day }).where("entity_id", "=", entityId).execute();
}
