import { type RawBuilder, sql } from "kysely";
import type { Database } from "../db/database.ts";
import { iso } from "../db/expressions.ts";
import { query } from "../db/query.ts";

/** Instants are epoch ms. Null: the list does not say. */
export interface ListedKey {
  /** The short key. */
  readonly id: string;
  readonly lastUsedAt: number | null;
  readonly expiresAt: number | null;
  readonly createdBy: string | null;
}

/** Keys without usage are left out. If two readings run at once, the last one to end counts. */
export async function keepListedKeys(
  db: Database,
  { sourceId, keys }: { sourceId: number; keys: readonly ListedKey[] },
): Promise<void> {
  const at = (column: string): RawBuilder<unknown> => sql`to_timestamp(k.${sql.id(column)} / 1000.0)`;
  await sql`
    insert into usage.listed_key (entity_id, last_used_at, expires_at, created_by)
    select distinct on (e.entity_id) e.entity_id, ${at("lastUsedAt")}, ${at("expiresAt")}, k."createdBy"
    from json_to_recordset(${JSON.stringify(keys)}::json) k
           (id text, "lastUsedAt" bigint, "expiresAt" bigint, "createdBy" text)
    join usage.entity e on e.source_id = ${sourceId} and e.dimension = 'api_key' and e.external_id = k.id
    order by e.entity_id
    on conflict (entity_id) do update
    set last_used_at = excluded.last_used_at, expires_at = excluded.expires_at, created_by = excluded.created_by
  `.execute(db);
}

export interface ShownKey {
  readonly id: string;
  /** ISO instants, UTC. */
  readonly lastUsedAt: string | null;
  readonly expiresAt: string | null;
  readonly createdBy: string | null;
}

export async function listedKeys(
  db: Database,
  { sourceId, ids }: { sourceId: number; ids: readonly string[] },
) {
  return query<ShownKey>(db)`
    select usage.shown_id(e.external_id) as id, ${iso("k.last_used_at")} as "lastUsedAt", ${iso("k.expires_at")} as "expiresAt",
           k.created_by as "createdBy"
    from usage.listed_key k join usage.entity e using (entity_id)
    where e.source_id = ${sourceId} and usage.shown_id(e.external_id) = any (${ids}::text[])
  `;
}
