import { sql } from "kysely";
import { lockScopes } from "../catalog/scopes.ts";
import type { Store } from "../db/database.ts";

/** Scopes that one transaction holds locked. */
const SCOPES_AT_ONCE = 50;

/**
 * Joins settled fragments that touch and were fetched longer ago than any answer may still be on its way: settling by
 * whole days leaves one a day, and they would grow without end. A joined fragment keeps the newest number, which fences,
 * and the oldest time, since it is at least as fresh as that. Returns how many fragments went.
 */
export async function compactCoverage(
  store: Store,
  { sourceId, olderThanDays }: { sourceId: number; olderThanDays: number },
): Promise<number> {
  const { rows } = await sql<{ scope_id: number }>`
    select c.scope_id from usage.coverage c join usage.scope s using (scope_id)
    where s.source_id = ${sourceId} and c.settled and c.fetched_at < now() - make_interval(days => ${olderThanDays})
    group by c.scope_id having count(*) > 1
    order by c.scope_id
  `.execute(store.db);
  let removed = 0;
  for (let first = 0; first < rows.length; first += SCOPES_AT_ONCE) {
    const scopeIds = rows.slice(first, first + SCOPES_AT_ONCE).map((row) => row.scope_id);
    removed += await store.transaction(async ({ db }) => {
      await lockScopes(db, scopeIds);
      const { rows: joined } = await sql<Joined>`
        with old as (
          select scope_id, period_start, period_end, fetch_number, fetched_at,
                 period_start is distinct from lag(period_end) over (partition by scope_id order by period_start) as begins
          from usage.coverage
          where scope_id = any (${scopeIds}::integer[]) and settled
            and fetched_at < now() - make_interval(days => ${olderThanDays})
        ), islands as (
          select *, count(*) filter (where begins) over (partition by scope_id order by period_start) as island from old
        )
        select scope_id, min(period_start) as "from", max(period_end) as "to", max(fetch_number) as number,
               min(fetched_at) as at, count(*)::integer as fragments
        from islands group by scope_id, island having count(*) > 1
      `.execute(db);
      for (const { scope_id, from, to, number, at } of joined) {
        await sql`
          delete from usage.coverage
          where scope_id = ${scope_id} and period_start >= ${from} and period_end <= ${to}
        `.execute(db);
        await sql`
          insert into usage.coverage (scope_id, period_start, period_end, settled, fetch_number, fetched_at)
          values (${scope_id}, ${from}, ${to}, true, ${number}, ${at})
        `.execute(db);
      }
      return joined.reduce((sum, part) => sum + part.fragments - 1, 0);
    });
  }
  return removed;
}

interface Joined {
  readonly scope_id: number;
  readonly from: Date;
  readonly to: Date;
  readonly number: number;
  readonly at: Date;
  readonly fragments: number;
}
