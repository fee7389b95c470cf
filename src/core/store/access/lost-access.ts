import { sql } from "kysely";
import { lockScopesWhere } from "../catalog/scopes.ts";
import { endAccess } from "../catalog/write-workspaces.ts";
import { endUnprovenAccess } from "../coverage/proved-time.ts";
import type { Store } from "../db/database.ts";
import { type Database, query, queryValues } from "../db/query.ts";
import { invalidateZerosOf } from "./invalidate-zeros.ts";

export interface LostWorkspace {
  readonly workspaceId: string;
  readonly isNewlyUnlisted: boolean;
  readonly zeros: number;
}

/**
 * Ends the proof of access to workspaces that a listing, a response over all of time or their own statistics did not name.
 * Access may be lost since the last proof. So zeros loaded since then, or by responses under way at that proof, are
 * invalidated. Newer proof stays. Loads that read the old proof hold the locks of their scopes, so this function waits for
 * them.
 */
export async function loseAccess(
  store: Store,
  lost: {
    sourceId: number;
    workspaceIds: readonly string[];
    at: number;
    /** `until`: end of the time that a response over all of time covers. */
    missedBy: "listing" | "statistics" | { readonly until: number };
  },
): Promise<LostWorkspace[]> {
  const at = new Date(lost.at);
  const { missedBy } = lost;
  const isUnlisted = missedBy === "listing";
  const wasDue = wasDueIn(missedBy);
  const candidates = (db: Database) =>
    sql<{ entity_id: number; external_id: string; leaves: boolean }>`
      select w.entity_id, e.external_id, ${isUnlisted} and w.unlisted_since is null and not w.is_deleted as leaves
      from usage.workspace w join usage.entity e using (entity_id)
      where e.source_id = ${lost.sourceId} and e.external_id = any (${lost.workspaceIds}::text[])
        and (w.unlisted_since is null or w.unlisted_since <= ${at}) and ${wasDue}
        and case when w.readable_at is null then ${isUnlisted} and w.unlisted_since is null else w.readable_at <= ${at} end
      order by e.external_id
    `.execute(db);
  if ((await candidates(store.db)).rows.length === 0) return [];
  return store.transaction(async ({ db }) => {
    await lockScopesWhere(db, ofWorkspaces(lost));
    const { rows } = await candidates(db);
    const ids = rows.map((row) => row.entity_id);
    const zeros = await invalidateZerosOf(db, {
      time: sql`
        select s.scope_id, '{(,)}'::tstzmultirange, w.readable_at
        from usage.scope s join usage.workspace w on w.entity_id = s.workspace_id
        where w.entity_id = any (${ids}::integer[]) and w.readable_at is not null
      `,
      noticedAt: lost.at,
    });
    // Exports and totals may have named nothing because access was lost, so they no longer prove these zeros.
    await endUnprovenAccess(db, ids);
    // Comes last: all loads of a workspace share its row, which is locked until the commit.
    await endAccess(db, { sourceId: lost.sourceId, entityIds: ids, at: lost.at, isUnlisted });
    return rows.map((row) => ({
      workspaceId: row.external_id,
      isNewlyUnlisted: row.leaves,
      zeros: zeros.get(row.entity_id) ?? 0,
    }));
  });
}

/** SQL condition: the response should have named workspace `w`. */
function wasDueIn(missedBy: Parameters<typeof loseAccess>[1]["missedBy"]) {
  if (missedBy === "listing") return sql`true`;
  // Usage that named the workspace meanwhile is better proof.
  if (missedBy === "statistics") return sql`w.used_before is null`;
  // A response must name a workspace only if the workspace has usage in its time. `used_before` and the last proof show when
  // that usage was.
  const until = new Date(missedBy.until);
  return sql`w.used_before is not null and least(w.used_before, w.readable_at + interval '1 hour') <= ${until}`;
}

export async function withoutUsage(
  db: Database,
  { sourceId, workspaceIds }: { sourceId: number; workspaceIds: readonly string[] },
): Promise<string[]> {
  return queryValues<string>(db)`
    select e.external_id as id from usage.workspace w join usage.entity e using (entity_id)
    where e.source_id = ${sourceId} and e.external_id = any (${workspaceIds}::text[])
      and w.used_before is null and not w.is_deleted
    order by 1
  `;
}

/**
 * Returns workspaces that no earlier response over all of time named, and whose final days have no usage. Until now, only their
 * own statistics proved these zeros. `finalUntil`: end of their final days, epoch ms.
 */
export async function restedOnStatistics(
  db: Database,
  named: { sourceId: number; workspaceIds: readonly string[]; until: number },
): Promise<{ workspaceId: string; finalUntil: number }[]> {
  return query<{ workspaceId: string; finalUntil: number }>(db)`
    select f.external_id as "workspaceId", (extract(epoch from f.until) * 1000)::float8 as "finalUntil"
    from (
      select w.entity_id, e.external_id, max(c.period_end) as until
      from usage.workspace w
      join usage.entity e using (entity_id)
      join usage.trace_scope s on s.workspace_id = w.entity_id and s.stride = 'day'
      join usage.coverage c using (scope_id)
      where e.source_id = ${named.sourceId} and e.external_id = any (${named.workspaceIds}::text[])
        and (w.used_before is null or w.used_before > ${new Date(named.until)}) and c.final
      group by 1, 2
    ) f
    where not exists (
      select from usage.trace_scope s join usage.series x using (scope_id) join usage.dated_record r using (series_id)
      where s.workspace_id = f.entity_id and s.stride = 'day' and r.traces > 0 and r.bucket_start < (f.until at time zone 'UTC')::date
    )
    order by 1
  `;
}

export async function invalidateZeros(
  store: Store,
  { sourceId, workspaceIds, at }: { sourceId: number; workspaceIds: readonly string[]; at: number },
): Promise<void> {
  await store.transaction(async ({ db }) => {
    const scopeIds = await lockScopesWhere(db, ofWorkspaces({ sourceId, workspaceIds }));
    await invalidateZerosOf(db, {
      time: sql`
        select scope_id, '{(,)}'::tstzmultirange, '-infinity'::timestamptz from unnest(${scopeIds}::integer[]) s (scope_id)
      `,
      noticedAt: at,
    });
  });
}

function ofWorkspaces({ sourceId, workspaceIds }: { sourceId: number; workspaceIds: readonly string[] }) {
  return sql`workspace_id in (
    select entity_id from usage.entity where source_id = ${sourceId} and external_id = any (${workspaceIds}::text[])
  )`;
}
