import { sql } from "kysely";
import { lockScopes } from "../catalog/scopes.ts";
import type { Store } from "../db/database.ts";

/** Scopes that one transaction locks. */
const SCOPES_AT_ONCE = 50;

/**
 * Takes the proof by the export away from what was restated since, before `cut`. The restatement shows that until it is pruned;
 * afterwards only the missing proof does. Call it before such restatements are removed. A restatement of a day also ends the
 * proof of its hours.
 */
export async function unproveRestated(
  store: Store,
  { sourceId, cut }: { sourceId: number; cut: string },
): Promise<void> {
  // By scope and bucket: the newest restatement of it.
  const restated = sql`
    select c.scope_id, t.bucket_start as "start", max(t.fetch_number) as fetch_number,
           t.bucket_start + case own.stride when 'hour' then interval '1 hour' when 'day' then interval '24 hours'
             when 'week' then interval '168 hours' when 'month' then interval '720 hours' else interval '8760 hours' end as "end"
    from usage.restatement t
    join usage.series s using (series_id)
    join usage.scope own on own.scope_id = s.scope_id
    join usage.scope c
      on c.source_id = own.source_id and c.kind = own.kind and c.trace_tier = own.trace_tier
     and c.group_by = own.group_by and c.workspace_id = own.workspace_id
     and (c.stride = own.stride or own.stride = 'day' and c.stride = 'hour')
    where own.source_id = ${sourceId} and t.restated_at < ${cut}::timestamptz
    group by c.scope_id, t.bucket_start, own.stride`;
  const isOlder = sql`r.scope_id = n.scope_id and r.fetch_number < n.fetch_number
    and r.period_start < n."end" and r.period_end > n."start"`;
  const { rows } = await sql<{ scope_id: number }>`
    with n as (${restated})
    select distinct n.scope_id from n join usage.reconciled r on ${isOlder} order by 1
  `.execute(store.db);
  for (let first = 0; first < rows.length; first += SCOPES_AT_ONCE) {
    const scopeIds = rows.slice(first, first + SCOPES_AT_ONCE).map((row) => row.scope_id);
    await store.transaction(async ({ db }) => {
      await lockScopes(db, scopeIds);
      await sql`
        with n as (select * from (${restated}) n where scope_id = any (${scopeIds}::integer[])), removed as (
          delete from usage.reconciled r where exists (select from n where ${isOlder}) returning r.*
        )
        insert into usage.reconciled (scope_id, period_start, period_end, fetch_number, reconciled_at)
        select r.scope_id, lower(part), upper(part), r.fetch_number, r.reconciled_at
        from removed r
        cross join lateral unnest(
          tstzmultirange(tstzrange(r.period_start, r.period_end))
          - (select range_agg(tstzrange(n."start", n."end")) from n where ${isOlder})
        ) part
      `.execute(db);
    });
  }
}
