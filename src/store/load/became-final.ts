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
