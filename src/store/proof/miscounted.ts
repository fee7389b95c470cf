import { sql } from "kysely";
import type { Interval } from "../../domain/time/window.ts";
import { clearTime, multirange, type ScopeTime } from "../catalog/scope-time.ts";
import { lockScopes } from "../catalog/scopes.ts";
import type { Database, Store } from "../db/database.ts";

/** A calendar month of a day scope, UTC, whose records are not those that its loads counted. */
interface Miscounted extends Interval {
  readonly scopeId: number;
}

/**
 * Doubts what somebody changed past the triggers, such as by restoring one table: months whose records of days are not the totals
 * that their loads kept. Their days are provisional and unproved, so the next sync asks for them again and compares each record. The
 * totals are then those of the records, so that each change is found once. Returns how many months x scopes there were. A change
 * that leaves count and sum of each series and month as they were is not seen.
 */
export async function doubtMiscounted(store: Store, sourceId: number): Promise<number> {
  const { rows: scopes } = await sql<{ scope_id: number }>`
    select scope_id from usage.scope where source_id = ${sourceId} and stride = 'day' order by scope_id
  `.execute(store.db);
  const suspects = await miscounted(
    store.db,
    scopes.map((row) => row.scope_id),
  );
  let months = 0;
  for (const scopeId of new Set(suspects.map((one) => one.scopeId))) {
    months += await store.transaction(async ({ db }) => {
      await lockScopes(db, [scopeId]);
      const found = await miscounted(db, [scopeId]);
      for (const { start, end } of found) await doubt(db, { scopeIds: [scopeId], period: { start, end } });
      await recount(db, scopeId);
      return found.length;
    });
  }
  return months;
}

async function doubt(db: Database, time: ScopeTime): Promise<void> {
  const [scopeId] = time.scopeIds;
  const loaded = await clearTime(db, "coverage", time);
  for (const { period_start, period_end, fetch_number, fetched_at, traced } of loaded) {
    await sql`
      insert into usage.coverage (scope_id, period_start, period_end, final, fetch_number, fetched_at, traced)
      select ${scopeId}::integer, lower(part), upper(part), false, ${fetch_number}, ${fetched_at}, ${traced} * tstzmultirange(part)
      from unnest(tstzmultirange(tstzrange(${period_start}, ${period_end})) * ${multirange(time.period)}) part
    `.execute(db);
  }
  await clearTime(db, "reconciled", time);
  await clearTime(db, "matched_total", time);
}

async function miscounted(db: Database, scopeIds: readonly number[]): Promise<Miscounted[]> {
  const ids = sql`any (${[...scopeIds]}::integer[])`;
  const { rows } = await sql<Miscounted>`
    select m.scope_id as "scopeId", (extract(epoch from m.month_start) * 1000)::bigint as start,
           (extract(epoch from m.month_start + interval '1 month') * 1000)::bigint as "end"
    from (
      select distinct x.scope_id, month_start
      from (
        select r.series_id, usage.month_of(r.bucket_start) as month_start, sum(r.traces) as traces, count(*) as records
        from usage.dated_record r join usage.series x using (series_id) where x.scope_id = ${ids}
        group by 1, 2
      ) r
      full join (
        select t.* from usage.monthly_total t join usage.series x using (series_id) where x.scope_id = ${ids}
      ) t using (series_id, month_start)
      join usage.series x using (series_id)
      where (r.traces, r.records) is distinct from (t.traces, t.records)
    ) m
    order by 1, 2
  `.execute(db);
  return rows;
}

async function recount(db: Database, scopeId: number): Promise<void> {
  await sql`
    delete from usage.monthly_total t using usage.series x where x.series_id = t.series_id and x.scope_id = ${scopeId}
  `.execute(db);
  await sql`
    insert into usage.monthly_total (series_id, month_start, traces, records)
    select r.series_id, usage.month_of(r.bucket_start), sum(r.traces), count(*)
    from usage.dated_record r join usage.series x using (series_id) where x.scope_id = ${scopeId}
    group by 1, 2
  `.execute(db);
}
