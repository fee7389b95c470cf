import { sql } from "kysely";
import type { Database } from "../db/database.ts";

/** Notes for settled time of day scopes that it is settled since `at`, where nothing says so yet. */
export async function noteSettlement(
  db: Database,
  { scopeIds, at }: { scopeIds: readonly number[]; at: string },
): Promise<number> {
  const { numAffectedRows } = await sql`
    insert into usage.settlement (scope_id, period_start, period_end, settled_at)
    select c.scope_id, lower(part), upper(part), ${at}::timestamptz
    from (
      select scope_id, range_agg(tstzrange(period_start, period_end)) as settled
      from usage.coverage
      where settled and scope_id = any (${[...scopeIds]}::integer[])
      group by scope_id
    ) c
    cross join lateral unnest(c.settled - coalesce((
      select range_agg(tstzrange(s.period_start, s.period_end)) from usage.settlement s where s.scope_id = c.scope_id
    ), '{}')) part
    order by 1, 2
  `.execute(db);
  return Number(numAffectedRows ?? 0);
}

/** Notes as settled from now on what a release from before this history has settled without a note. */
export async function healSettlement(db: Database, sourceId: number): Promise<number> {
  const { rows } = await sql<{ scope_id: number; at: string }>`
    select scope_id, clock_timestamp()::text as at from usage.scope where source_id = ${sourceId} and stride = 'day'
  `.execute(db);
  const at = rows[0]?.at;
  return at === undefined ? 0 : noteSettlement(db, { scopeIds: rows.map((row) => row.scope_id), at });
}
