import { sql } from "kysely";
import type { FetchStamp } from "../../domain/planning/coverage.ts";
import { HOUR_MS } from "../../domain/time/stride.ts";
import type { Database, Store } from "../db/database.ts";
import { entityIds } from "./entities.ts";
import { learnNames } from "./entity-names.ts";

export interface StoredWorkspace {
  /** The platform's id. */
  readonly workspaceId: string;
}

interface ListedWorkspace {
  readonly workspaceId: string;
  readonly name: string | null;
  readonly isDeleted: boolean;
}

/** Enters the workspaces that the configuration names now, without proof of access. None: all that are listed. */
export async function registerWorkspaces(
  db: Database,
  { sourceId, workspaceIds }: { sourceId: number; workspaceIds: readonly string[] },
): Promise<void> {
  await enter(db, sourceId, workspaceIds);
  await sql`
    update usage.source set workspace_ids = ${[...workspaceIds]}::text[]
    where source_id = ${sourceId} and workspace_ids <> ${[...workspaceIds]}::text[]
  `.execute(db);
}

/** SQL condition: the configuration of source `s` names workspace `e`, or it names none. */
export const isConfigured = sql<boolean>`(s.workspace_ids = '{}' or e.external_id = any (s.workspace_ids))`;

/** The known workspaces that are read now, including deleted ones: they can still hold past usage. */
export async function configuredWorkspaces(db: Database, sourceId: number): Promise<StoredWorkspace[]> {
  const { rows } = await sql<StoredWorkspace>`
    select e.external_id as "workspaceId"
    from usage.workspace w join usage.entity e using (entity_id) join usage.source s using (source_id)
    where s.source_id = ${sourceId} and ${isConfigured}
    order by 1
  `.execute(db);
  return rows;
}

/**
 * Applies a listing of the platform: names, deletions, and proof of access to each listed workspace at its time. A known
 * workspace that is not listed loses its proof of access. Returns the workspaces that left the listing without being
 * deleted: they raise an alarm and stay known (rule 11 of docs/architecture.md).
 */
export async function applyListing(
  store: Store,
  listing: { sourceId: number; workspaces: readonly ListedWorkspace[]; stamp: FetchStamp },
): Promise<{ unlisted: string[] }> {
  const { sourceId, workspaces, stamp } = listing;
  const ids = workspaces.map((w) => w.workspaceId);
  await store.transaction(async ({ db }) => {
    await enter(db, sourceId, ids);
    // A listing describes the present, so its names belong to the current hour.
    const entities = await entityIds(db, { sourceId, dimension: "workspace", dimensionIds: ids });
    const hour = Math.floor(stamp.fetchedAt / HOUR_MS);
    await learnNames(
      db,
      stamp.fetchNumber,
      workspaces.flatMap(({ name }, i) =>
        name === null ? [] : [{ entityId: entities[i] as number, name, firstHour: hour, lastHour: hour }],
      ),
    );
  });
  await store.statement((db) => noteListing(db, listing));
  const gone = await store.db
    .selectFrom("workspace")
    .innerJoin("entity", "entity.entity_id", "workspace.entity_id")
    .select("external_id")
    .where("source_id", "=", sourceId)
    .where("unlisted_since", "is not", null)
    .where("is_deleted", "=", false)
    .orderBy("external_id")
    .execute();
  return { unlisted: gone.map((row) => row.external_id) };
}

/**
 * Keeps what a listing says about every known workspace, in one statement: all loads write to these rows, so no
 * transaction may hold them from one statement to the next.
 */
async function noteListing(
  db: Database,
  { sourceId, workspaces, stamp }: Parameters<typeof applyListing>[1],
): Promise<void> {
  const at = new Date(stamp.fetchedAt);
  const ids = workspaces.map((w) => w.workspaceId);
  // In key order, like loads, so that they cannot deadlock. Newer proof of access or newer absence stays.
  await sql`
    with locked as (
      select w.entity_id, e.external_id
      from usage.workspace w join usage.entity e on e.entity_id = w.entity_id
      where e.source_id = ${sourceId}
      order by w.entity_id
      for no key update of w
    )
    update usage.workspace w
    set readable_at = case
          when w.unlisted_since > ${at} then w.readable_at
          when l.id is not null then greatest(w.readable_at, ${at})
          when w.readable_at > ${at} then w.readable_at
        end,
        unlisted_since = case
          when w.unlisted_since > ${at} then w.unlisted_since
          when l.id is not null then null
          when w.readable_at > ${at} then w.unlisted_since
          else coalesce(w.unlisted_since, ${at})
        end,
        is_deleted = coalesce(l.deleted, w.is_deleted)
    from locked
    left join unnest(${ids}::text[], ${workspaces.map((w) => w.isDeleted)}::boolean[]) l (id, deleted)
      on l.id = locked.external_id
    where locked.entity_id = w.entity_id
  `.execute(db);
}

async function enter(db: Database, sourceId: number, workspaceIds: readonly string[]): Promise<void> {
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

/** All workspaces of a source that were ever known. */
export async function workspacesOf(db: Database, sourceId: number): Promise<StoredWorkspace[]> {
  return db
    .selectFrom("workspace")
    .innerJoin("entity", "entity.entity_id", "workspace.entity_id")
    .select("entity.external_id as workspaceId")
    .where("entity.source_id", "=", sourceId)
    .orderBy("entity.external_id")
    .execute();
}
