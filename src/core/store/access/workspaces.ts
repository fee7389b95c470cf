import { sql } from "kysely";
import type { FetchToken } from "../../domain/coverage/finality.ts";
import { entityIds } from "../catalog/entities.ts";
import { learnNames } from "../catalog/entity-names.ts";
import { configureWorkspaces } from "../catalog/sources.ts";
import { createWorkspaces, noteListed } from "../catalog/write-workspaces.ts";
import type { Store } from "../db/database.ts";
import { type Database, queryValues } from "../db/query.ts";
import { type LostWorkspace, loseAccess } from "./lost-access.ts";

interface ListedWorkspace {
  readonly workspaceId: string;
  readonly name: string | null;
  readonly isDeleted: boolean;
}

export async function registerWorkspaces(
  db: Database,
  { sourceId, workspaceIds }: { sourceId: number; workspaceIds: readonly string[] },
): Promise<void> {
  await createWorkspaces(db, { sourceId, workspaceIds });
  await configureWorkspaces(db, { sourceId, workspaceIds });
}

/** SQL condition: the configuration of source `s` names workspace `e`, or names no workspace. */
export const isConfigured = sql<boolean>`usage.is_configured(s.workspace_ids, e.external_id)`;

/** SQL condition: the usage of workspace `w` is unknown. No usage named it, and its statistics do not prove access now. */
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
 * Applies a listing of the platform: names and deletions. A listing proves that a workspace exists, not that the key reads it.
 * A known workspace that is not listed loses its proof of access, and zeros loaded since that proof are invalidated. Returns
 * the lost workspaces; they stay known (rule 11 of docs/rules.md).
 */
export async function applyListing(
  store: Store,
  listing: {
    sourceId: number;
    workspaces: readonly ListedWorkspace[];
    fetchToken: FetchToken;
  },
): Promise<LostWorkspace[]> {
  const { sourceId, workspaces, fetchToken } = listing;
  const ids = workspaces.map((w) => w.workspaceId);
  const entities = await store.transaction(async ({ db }) => {
    await createWorkspaces(db, { sourceId, workspaceIds: ids });
    return entityIds(db, { sourceId, dimension: "workspace", dimensionIds: ids });
  });
  const named = new Map(workspaces.map(({ name }, i) => [entities[i] as number, name]));
  const names = [...named].flatMap(([entityId, name]) => (name === null ? [] : [{ entityId, name }]));
  await learnNames(store, { sourceId, fetchToken, part: 0, names });
  await store.statement((db) => noteListed(db, { sourceId, workspaces, at: fetchToken.fetchedAt }));
  const known = await workspacesOf(store.db, sourceId);
  const gone = known.filter((id) => !ids.includes(id));
  return loseAccess(store, { sourceId, workspaceIds: gone, at: fetchToken.fetchedAt, missedBy: "listing" });
}

export async function workspacesOf(db: Database, sourceId: number): Promise<string[]> {
  return queryValues<string>(db)`
    select e.external_id as id from usage.workspace w join usage.entity e using (entity_id)
    where e.source_id = ${sourceId} order by 1
  `;
}
