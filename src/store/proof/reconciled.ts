import { sql } from "kysely";
import type { FetchStamp } from "../../domain/coverage/finality.ts";
import { STRIDE_MS } from "../../domain/time/stride.ts";
import type { Window } from "../../domain/time/window.ts";
import { clearTime, multirange, overlaps } from "../catalog/scope-time.ts";
import type { Database } from "../db/database.ts";

/**
 * Keeps that a window was compared with its export, without the buckets that still have a difference. The newest export
 * wins, in any order of arrival. The caller holds the lock of the scopes.
 */
export async function markReconciled(
  db: Database,
  marked: { window: Window; stamp: FetchStamp; scopeIds: readonly number[] },
): Promise<void> {
  const { window, stamp, scopeIds } = marked;
  if (scopeIds.length === 0) return;
  const time = { scopeIds, period: window };
  // What still overlaps after this is of a newer export.
  await clearTime(db, "reconciled", { ...time, olderThan: stamp.fetchNumber });
  await sql`
    with newer as (
      select scope_id, range_agg(tstzrange(period_start, period_end)) as parts
      from usage.reconciled where ${overlaps(time)}
      group by scope_id
    ), unresolved as (
      select scope_id, range_agg(tstzrange(
        bucket_start, bucket_start + make_interval(secs => ${STRIDE_MS[window.stride] / 1000})
      )) as parts
      from (
        select distinct scope_id, bucket_start from usage.reconciliation_difference
        where state in ('open', 'platform_disagrees') and scope_id = any (${[...scopeIds]}::integer[])
          and bucket_start >= ${new Date(window.start)} and bucket_start < ${new Date(window.end)}
      ) d
      group by scope_id
    )
    insert into usage.reconciled (scope_id, period_start, period_end, fetch_number, reconciled_at)
    select scope_id, lower(part), upper(part), ${stamp.fetchNumber}, ${new Date(stamp.fetchedAt)}
    from unnest(${[...scopeIds]}::integer[]) s (scope_id)
    left join newer using (scope_id)
    left join unresolved using (scope_id)
    cross join lateral unnest(
      ${multirange(window)} - coalesce(newer.parts, '{}') - coalesce(unresolved.parts, '{}')
    ) part
  `.execute(db);
}
