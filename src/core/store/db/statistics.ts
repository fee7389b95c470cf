import { sql } from "kysely";
import { type Database, query } from "./query.ts";

/**
 * Analyzes tables that were never analyzed, or changed by a tenth since. Otherwise Postgres plans views as if they were empty.
 * Call it after loads, never inside their transaction. Skips tables of another owner or under autovacuum. If Postgres refuses
 * or cancels, autovacuum does it later.
 */
export async function analyzeStale(db: Database): Promise<string[]> {
  try {
    const rows = await query<{ relname: string }>(db)`
      select c.relname
      from pg_class c
      where c.relnamespace = 'usage'::regnamespace and c.relkind = 'r' and pg_relation_size(c.oid) > 0
        and pg_has_role(c.relowner, 'usage')
        and (
          c.reltuples < 0
          or pg_stat_get_mod_since_analyze(c.oid) > 10 + c.reltuples / 10
          -- The counters of other sessions come late. Pages do not.
          or pg_relation_size(c.oid) / current_setting('block_size')::integer > c.relpages * 1.2
        )
      order by c.relname
    `;
    if (rows.length === 0) return [];
    const tables = sql.join(rows.map(({ relname }) => sql.id("usage", relname)));
    await sql`analyze (skip_locked) ${tables}`.execute(db);
    return rows.map(({ relname }) => relname);
  } catch {
    return [];
  }
}
