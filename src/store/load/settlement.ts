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
