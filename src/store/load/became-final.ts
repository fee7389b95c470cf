import { sql } from "kysely";
import type { Database } from "../db/database.ts";

/** Notes that the final time of day scopes is final since the load's instant, except time that is noted already. */
export async function noteFinalDays(db: Database, scopeIds: readonly number[]): Promise<void> {
  await sql`
    insert into usage.became_final (scope_id, period_start, period_end, final_at)
    select c.scope_id, lower(part), upper(part), (select usage.load_instant())
    from (
      select scope_id, range_agg(tstzrange(period_start, period_end)) as final
      from usage.coverage
      where final and scope_id = any (${[...scopeIds]}::integer[])
      group by scope_id
    ) c
    cross join lateral unnest(c.final - coalesce((
      select range_agg(tstzrange(s.period_start, s.period_end)) from usage.became_final s where s.scope_id = c.scope_id
    ), '{}')) part
    order by 1, 2
  `.execute(db);
}

/** Notes as final from now on what an older release final without a note. */
export async function healSettlement(db: Database, sourceId: number): Promise<void> {
  const { rows } = await sql<{ scope_id: number }>`
    select scope_id from usage.every_scope where source_id = ${sourceId} and stride = 'day'
  `.execute(db);
  await noteFinalDays(
    db,
    rows.map((row) => row.scope_id),
  );
}
