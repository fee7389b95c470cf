import { sql } from "kysely";
import type { Store } from "../db/database.ts";
import { affected, inBatches } from "./prune.ts";

/**
 * Removes history that is older than so many days. It first moves `history_since`, so that no query answers for an
 * instant whose history is incomplete. Settlements that old apply to every instant that can still be asked for, so they
 * are merged.
 */
export async function pruneHistory(
  store: Store,
  { sourceId, keepDays }: { sourceId: number; keepDays: number },
): Promise<{ restatements: number; finalRanges: number; lateChanges: number }> {
  const { rows: cuts } = await sql<{ cut: string }>`
    update usage.source s
    set history_since = greatest(history_since, now() - make_interval(days => ${keepDays}))
    where source_id = ${sourceId} and s.created_at < now() - make_interval(days => ${keepDays})
    returning history_since::text as cut
  `.execute(store.db);
  const cut = cuts[0]?.cut;
  if (cut === undefined) return { restatements: 0, finalRanges: 0, lateChanges: 0 };
  const restatements = await inBatches(
    store.db,
    (limit) => sql`
      delete from usage.restatement
      where restatement_id in (
        select r.restatement_id
        from usage.restatement r join usage.series x using (series_id) join usage.every_scope p using (scope_id)
        where p.source_id = ${sourceId} and r.restated_at < ${cut}::timestamptz limit ${limit}
      )`,
  );
  const { rows: merged } = await sql<{ fewer: number }>`
    with old as (
      delete from usage.became_final t using usage.every_scope p
      where p.scope_id = t.scope_id and p.source_id = ${sourceId} and t.final_at < ${cut}::timestamptz
      returning t.*
    ), merged as (
      insert into usage.became_final (scope_id, period_start, period_end, final_at)
      select scope_id, lower(part), upper(part), final_at
      from (
        select scope_id, max(final_at) as final_at, range_agg(tstzrange(period_start, period_end)) as parts
        from old group by scope_id
      ) o
      cross join lateral unnest(parts) part
      returning 1
    )
    select (select count(*) from old) - (select count(*) from merged) as fewer
  `.execute(store.db);
  await sql`
    delete from usage.withdrawal w using usage.every_scope p
    where p.scope_id = w.scope_id and p.source_id = ${sourceId} and w.withdrawn_at < ${cut}::timestamptz
  `.execute(store.db);
  const late = await sql`
    delete from usage.late_change where source_id = ${sourceId} and observed_on < (${cut}::timestamptz at time zone 'UTC')::date
  `.execute(store.db);
  return { restatements, finalRanges: merged[0]?.fewer ?? 0, lateChanges: affected(late) };
}
