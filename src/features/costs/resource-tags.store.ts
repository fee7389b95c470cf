import { sql } from "kysely";
import type { WorkspaceTags } from "../../core/domain/usage/resource-tag.ts";
import { noteTagsRead } from "../../core/store/catalog/write-workspaces.ts";
import type { Store } from "../../core/store/db/database.ts";
import { query } from "../../core/store/db/query.ts";

/**
 * Replaces a workspace's resource tags from today (UTC) on. Tags of the first day of readings apply to all earlier days,
 * because nothing else is known. If an entry was refused, tags whose key is missing stay.
 */
export async function keepWorkspaceTags(
  store: Store,
  {
    sourceId,
    workspaceId,
    tags,
    refused,
  }: { readonly sourceId: number; readonly workspaceId: string } & WorkspaceTags,
): Promise<void> {
  const given = [...valuesByKey(tags).values()];
  await store.transaction(async ({ db }) => {
    const [workspace] = await query<{ id: number; today: string; since: string }>(db)`
      select w.entity_id as id, n.today::text,
             (case when coalesce(w.tags_since, n.today) = n.today then '1900-01-01' else n.today end)::text as since
      from usage.workspace w
      join usage.entity e on e.entity_id = w.entity_id and e.source_id = ${sourceId} and e.external_id = ${workspaceId}
      cross join (select (now() at time zone 'UTC')::date as today) n
      -- Two readings at once: the one that ends last counts.
      for no key update of w
    `;
    if (workspace === undefined) return;
    const { id, today, since } = workspace;
    const now = sql`jsonb_to_recordset(${JSON.stringify(given)}::jsonb)
      g (dimension text, "resourceId" text, key text, value text)`;
    const isOf = sql`g.dimension = t.dimension and g."resourceId" = t.external_id and g.key = t.tag_key`;
    const isOver = sql`
      t.workspace_id = ${id} and t.valid_to is null and not exists (select from ${now} where ${isOf} and g.value = t.tag_value)
      and (${refused.length === 0} or exists (select from ${now} where ${isOf}))`;
    // A tag that was first read today did not last a whole day.
    await sql`delete from usage.resource_tag t where ${isOver} and t.valid_from = ${since}`.execute(db);
    await sql`update usage.resource_tag t set valid_to = ${today} where ${isOver}`.execute(db);
    await sql`
      insert into usage.resource_tag (workspace_id, dimension, external_id, tag_key, tag_value, valid_from)
      select ${id}, g.dimension, g."resourceId", g.key, g.value, ${since}::date
      from ${now}
      where not exists (
        select from usage.resource_tag t where t.workspace_id = ${id} and t.valid_to is null and ${isOf}
      )
    `.execute(db);
    await noteTagsRead(db, id, today);
  });
}

/** Values of the same key are joined in alphabetical order. */
function valuesByKey(tags: WorkspaceTags["tags"]) {
  const all = Map.groupBy(tags, ({ dimension, resourceId, key }) =>
    JSON.stringify([dimension, resourceId, key]),
  );
  return new Map(
    [...all].map(([id, [first, ...others]]) => {
      const values = [first, ...others].map((one) => one?.value ?? "");
      return [id, { ...first, value: [...new Set(values)].sort().join(", ") }];
    }),
  );
}
