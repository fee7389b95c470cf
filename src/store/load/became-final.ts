import { sql } from "kysely";
import type { Database } from "../db/database.ts";

/** Notes that the settled time of day scopes is settled since the load's instant, except time that is noted already. */
export async function noteSettlement(db: Database, scopeIds: readonly number[]): Promise<void> {
  await sql`
    insert into usage.settlement (scope_id, period_start, period_end, settled_at)
    select c.scope_id, lower(part), upper(part), (select usage.load_instant())
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
}

/** Notes as settled from now on what an older release settled without a note. */
export async function healSettlement(db: Database, sourceId: number): Promise<void> {
  const { rows } = await sql<{ scope_id: number }>`
    select scope_id from usage.every_scope where source_id = ${sourceId} and stride = 'day'
  `.execute(db);
  await noteSettlement(
    db,
    rows.map((row) => row.scope_id),
  );
}
