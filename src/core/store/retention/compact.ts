import { sql } from "kysely";
import { lockScopes } from "../catalog/scopes.ts";
import type { Store } from "../db/database.ts";
import { queryOne, queryValues, type Row } from "../db/query.ts";

const SCOPES_AT_ONCE = 50;
/**
 * A merged interval is merged again once its successors have this share of its length. Merging it with each new day would
 * rewrite its digests of all time every night.
 */
const LEFT_ALONE_BELOW = 1 / 16;
/**
 * The nightly removal of the oldest kept hours (`dropOldHours`) rewrites an interval's digests. So hours are merged only within
 * quarters, whose digests take 35 kB.
 */
const MERGED_WITHIN = sql`case s.stride when 'hour' then date_trunc('quarter', c.period_start, 'UTC') end`;

/**
 * Merges adjoining final intervals that no response can still change. Otherwise coverage would grow by one
 * interval a day; merged hours grow by one a quarter. A merged interval keeps the newest fetch number, the oldest fetch time,
 * the digests of its parts if each has one, and the oldest digest epoch. Returns the number of intervals saved.
 */
export async function compactCoverage(
  store: Store,
  { sourceId, olderThanDays }: { sourceId: number; olderThanDays: number },
): Promise<number> {
  const isOld = sql`c.final and c.fetched_at < now() - make_interval(days => ${olderThanDays})`;
  const ids = await queryValues<Row<"usage.coverage">["scopeId"]>(store.db)`
    select c.scope_id from usage.coverage c join usage.scope s using (scope_id)
    where s.source_id = ${sourceId} and ${isOld}
    group by c.scope_id having count(*) > 1
    order by c.scope_id
  `;
  let removed = 0;
  for (let first = 0; first < ids.length; first += SCOPES_AT_ONCE) {
    const scopeIds = ids.slice(first, first + SCOPES_AT_ONCE);
    removed += await store.transaction(async ({ db }) => {
      await lockScopes(db, scopeIds);
      const compacted = await queryOne<{ removed: number }>(db)`
        with old as (
          select c.*, ${MERGED_WITHIN} as within
          from usage.coverage c join usage.scope s using (scope_id)
          where scope_id = any (${scopeIds}::integer[]) and ${isOld}
        ), bounded as (
          select *, period_start is distinct from lag(period_end) over time or within is distinct from lag(within) over time as begins
          from old window time as (partition by scope_id order by period_start)
        ), numbered as (
          select *, count(*) filter (where begins) over (partition by scope_id order by period_start) as island from bounded
        ), sized as (
          select *, min(period_start) over island as first_start, min(period_end) over island as first_end,
                 max(period_end) over island as last_end
          from numbered window island as (partition by scope_id, island)
        ), merged as (
          select scope_id, min(period_start) as period_start, max(period_end) as period_end,
                 max(fetch_number) as fetch_number, min(fetched_at) as fetched_at, range_agg(traced) as traced, min(digest_epoch) as digest_epoch,
                 case when count(*) = count(digest) then string_agg(digest, '' order by period_start) end as digest
          from sized
          where period_start > first_start or last_end - first_end >= (first_end - first_start) * ${LEFT_ALONE_BELOW}::float8
          group by scope_id, island having count(*) > 1
        ), removed as (
          delete from usage.coverage c using merged m
          where c.scope_id = m.scope_id and c.period_start >= m.period_start and c.period_end <= m.period_end
          returning m.*
        ), entered as (
          -- Depends on the removal, so that no new row overlaps an old one.
          insert into usage.coverage
            (scope_id, period_start, period_end, final, fetch_number, fetched_at, traced, digest, digest_epoch)
          select distinct scope_id, period_start, period_end, true, fetch_number, fetched_at, traced, digest, digest_epoch
          from removed
          returning 1
        )
        select (select count(*) from removed) - (select count(*) from entered) as removed
      `;
      return compacted.removed;
    });
  }
  return removed;
}
