import { createHash } from "node:crypto";
import { type Database, query } from "../../core/store/db/query.ts";

/**
 * Distinguishes this database from others with the same source: 16 hexadecimal digits. The name stays when Postgres restarts,
 * fails over or is restored in place. It changes with a rename, a dump or pg_upgrade.
 */
export async function nameOfDatabase(db: Database): Promise<string> {
  const rows = await query<{ name: string; since: string; mayRequest: boolean }>(db)`
    select current_database() as name,
           (select coalesce(min(created_at)::text, '') from usage.source) as since,
           has_function_privilege('pg_catalog.pg_control_system()', 'execute') as "mayRequest"
  `;
  const { name = "", since = "", mayRequest = false } = rows[0] ?? {};
  // A managed Postgres may hide its identifier. Then the creation of the first source is used, which a copy shares.
  const server = mayRequest ? await systemIdentifier(db) : since;
  return createHash("sha256")
    .update(JSON.stringify([server, name]))
    .digest("hex")
    .slice(0, 16);
}

/** Drawn when Postgres creates the data directory. Standbys have the same one. */
async function systemIdentifier(db: Database): Promise<string> {
  const rows = await query<{
    id: string;
  }>(db)`select system_identifier::text as id from pg_control_system()`;
  return rows[0]?.id ?? "";
}
