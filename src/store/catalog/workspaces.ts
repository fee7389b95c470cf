import { sql } from "kysely";
import type { FetchStamp } from "../../domain/coverage/finality.ts";
import type { Store } from "../db/database.ts";
import { type Database, queryValues } from "../db/query.ts";
import { entityIds } from "./entities.ts";
import { learnNames } from "./entity-names.ts";
import { type LostWorkspace, loseAccess } from "./lost-access.ts";

interface ListedWorkspace {
  readonly workspaceId: string;
  readonly name: string | null;
  readonly isDeleted: boolean;
}

/** Stores the configured workspaces without proof of access. None: all that are listed. */
export async function registerWorkspaces(
  db: Database,
  { sourceId, workspaceIds }: { sourceId: number; workspaceIds: readonly string[] },
): Promise<void> {
  await enterWorkspaces(db, { sourceId, workspaceIds });
  await sql`
    update usage.source set workspace_ids = ${workspaceIds}::text[]
    where source_id = ${sourceId} and workspace_ids <> ${workspaceIds}::text[]
  `.execute(db);
}

/** SQL condition: the configuration of source `s` names workspace `e`, or it names none. */
export const isConfigured = sql<boolean>`usage.is_configured(s.workspace_ids, e.external_id)`;

/** SQL condition: no usage ever named workspace `w`, and its statistics do not prove access now. Its usage is not known. */
export const isNeverRead = sql<boolean>`(w.readable_at is null and w.used_before is null)`;

/** Configured workspaces, including deleted ones: they can still hold past usage. */
export async function configuredWorkspaces(db: Database, sourceId: number): Promise<string[]> {
  return queryValues<string>(db)`
    select e.external_id as id
    from usage.workspace w join usage.entity e using (entity_id) join usage.source s using (source_id)
    where s.source_id = ${sourceId} and ${isConfigured}
    order by 1
  `;
}

/**
 * Applies a listing of the platform: names and deletions. It proves that a workspace exists, not that the key reads it. A known
 * workspace that is not listed loses its proof of access, and the zeros that were loaded since then. Returns those that were
 * lost; they stay known (rule 11 of docs/rules.md).
 */
export async function applyListing(
  store: Store,
  listing: {
    sourceId: number;
    workspaces: readonly ListedWorkspace[];
    stamp: FetchStamp;
  },
): Promise<LostWorkspace[]> {
  const { sourceId, workspaces, stamp } = listing;
  const ids = workspaces.map((w) => w.workspaceId);
  const entities = await store.transaction(async ({ db }) => {
    await enterWorkspaces(db, { sourceId, workspaceIds: ids });
    return entityIds(db, { sourceId, dimension: "workspace", dimensionIds: ids });
  });
  const named = new Map(workspaces.map(({ name }, i) => [entities[i] as number, name]));
  const names = [...named].flatMap(([entityId, name]) => (name === null ? [] : [{ entityId, name }]));
  await learnNames(store, { sourceId, stamp, part: 0, names });
  await store.statement((db) => noteListing(db, listing));
  const known = await workspacesOf(store.db, sourceId);
  const gone = known.filter((id) => !ids.includes(id));
  return loseAccess(store, { sourceId, workspaceIds: gone, at: stamp.fetchedAt, missedBy: "listing" });
}

/** One statement: all loads write to these rows, so no transaction may hold them from one statement to the next. */
async function noteListing(
  db: Database,
  { sourceId, workspaces, stamp }: Parameters<typeof applyListing>[1],
): Promise<void> {
  const at = new Date(stamp.fetchedAt);
  const ids = workspaces.map((w) => w.workspaceId);
  // In key order, like loads, so that they cannot deadlock. Newer absence stays.
  await sql`
    with locked as (
      select w.entity_id, l.deleted, coalesce(w.unlisted_since <= ${at}, true) as is_news
      from usage.workspace w
      join usage.entity e on e.entity_id = w.entity_id
      join unnest(${ids}::text[], ${workspaces.map((w) => w.isDeleted)}::boolean[]) l (id, deleted) on l.id = e.external_id
      where e.source_id = ${sourceId}
      order by w.entity_id
      for no key update of w
    )
    update usage.workspace w
    set unlisted_since = case when is_news then null else w.unlisted_since end, is_deleted = deleted
    from locked
    where locked.entity_id = w.entity_id
  `.execute(db);
}

/** The new workspaces have no proof of access. */
export async function enterWorkspaces(
  db: Database,
  { sourceId, workspaceIds }: { sourceId: number; workspaceIds: readonly string[] },
): Promise<void> {
  const sorted = [...new Set(workspaceIds)].sort();
  await sql`
    insert into usage.entity (source_id, dimension, external_id)
    select ${sourceId}, 'workspace', id from unnest(${sorted}::text[]) id
    on conflict do nothing
  `.execute(db);
  await sql`
    insert into usage.workspace (entity_id)
    select entity_id from usage.entity
    where source_id = ${sourceId} and dimension = 'workspace' and external_id = any (${sorted}::text[])
    order by entity_id
    on conflict do nothing
  `.execute(db);
}

export async function workspacesOf(db: Database, sourceId: number): Promise<string[]> {
  return queryValues<string>(db)`
    select e.external_id as id from usage.workspace w join usage.entity e using (entity_id)
    where e.source_id = ${sourceId} order by 1
  `;
}
