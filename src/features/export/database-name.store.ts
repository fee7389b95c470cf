import { createHash } from "node:crypto";
import { type Database, query } from "../../core/store/db/query.ts";

/**
 * Distinguishes this database from others with the same source: 16 hexadecimal digits. It stays when Postgres restarts, fails
 * over or is restored in place, and changes with a rename, or when a dump or pg_upgrade moves it.
 */
export async function nameOfDatabase(db: Database): Promise<string> {
  const rows = await query<{ name: string; since: string; mayRequest: boolean }>(db)`
    select current_database() as name,
           (select coalesce(min(created_at)::text, '') from usage.source) as since,
           has_function_privilege('pg_catalog.pg_control_system()', 'execute') as "mayRequest"
  `;
  const { name = "", since = "", mayRequest = false } = rows[0] ?? {};
  // A managed Postgres may hide its identifier. A copy has the same first source, but that is better than the name alone.
  const server = mayRequest ? await systemIdentifier(db) : since;
  return createHash("sha256")
    .update(JSON.stringify([server, name]))
    .digest("hex")
    .slice(0, 16);
}

/** Drawn when the data directory was made, and the same on standbys. */
async function systemIdentifier(db: Database): Promise<string> {
  const rows = await query<{
    id: string;
  }>(db)`select system_identifier::text as id from pg_control_system()`;
  return rows[0]?.id ?? "";
}
