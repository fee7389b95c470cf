import { sql } from "kysely";
import { lockScopes } from "../catalog/scopes.ts";
import type { Database, Store } from "../db/database.ts";

/** Records that one transaction removes, about: a long one would hold up loads of its scope, vacuum and replicas. */
const BATCH = 50_000;
const MOST_DAYS = 366;
/** No answer is on its way for so long: until then coverage stands as the fence against older ones. */
const FETCHED_DAYS_AGO = 7;

/**
 * Removes hours of days that ended so long ago, with their coverage, a part of a scope at a time. Only where the day itself
 * is loaded: elsewhere its hours stand in for it, or may yet. Returns how many records went.
 */
export async function dropOldHours(
  store: Store,
  { sourceId, keepHours }: { sourceId: number; keepHours: number },
): Promise<number> {
  const { rows: scopes } = await sql<{ scope_id: number }>`
    select scope_id from usage.scope s
    where s.source_id = ${sourceId} and s.stride = 'hour' and exists (
      select from usage.coverage c where c.scope_id = s.scope_id and c.period_start < ${keptFrom(keepHours)}
    )
    order by scope_id
  `.execute(store.db);
  let removed = 0;
  for (const { scope_id: scopeId } of scopes) {
    for (let days: number | undefined = 1; days !== undefined; ) {
      const part: { records: number; isLast: boolean } = await dropPart(store, { scopeId, keepHours, days });
      removed += part.records;
      days = part.isLast ? undefined : nextLength(days, part.records);
    }
  }
  return removed;
}

/** Twice as many days where a part was small, half where it was too much. */
function nextLength(days: number, records: number): number {
  if (records > BATCH) return Math.max(1, Math.floor(days / 2));
  return records * 2 <= BATCH ? Math.min(MOST_DAYS, days * 2) : days;
}

/** Start of the first UTC day whose hours are kept. */
function keptFrom(keepHours: number) {
  return sql<Date>`date_trunc('day', now() - make_interval(hours => ${keepHours}), 'UTC')`;
}

async function dropPart(
  store: Store,
  { scopeId, keepHours, days }: { scopeId: number; keepHours: number; days: number },
): Promise<{ records: number; isLast: boolean }> {
  return store.transaction(async ({ db }) => {
    await lockScopes(db, [scopeId]);
    const part = await oldestPart(db, { scopeId, keepHours, days });
    if (part === undefined) return { records: 0, isLast: true };
    const { numAffectedRows } = await sql`
      delete from usage.hourly_record r using usage.series s
      where s.scope_id = ${scopeId} and r.series_id = s.series_id
        and r.bucket_start >= ${part.from}::timestamptz and r.bucket_start < ${part.to}::timestamptz
    `.execute(db);
    await sql`
      with gone as (
        delete from usage.coverage
        where scope_id = ${scopeId} and period_start < ${part.to}::timestamptz and period_end > ${part.from}::timestamptz
        returning *
      )
      insert into usage.coverage (scope_id, period_start, period_end, settled, fetch_number, fetched_at)
      select scope_id, lower(rest), upper(rest), settled, fetch_number, fetched_at
      from gone
      cross join lateral unnest(
        tstzmultirange(tstzrange(period_start, period_end))
          - tstzmultirange(tstzrange(${part.from}::timestamptz, ${part.to}::timestamptz))
      ) rest
    `.execute(db);
    return { records: Number(numAffectedRows ?? 0), isLast: false };
  });
}

/** The first stretch of old hours, of at most so many days, on days that are loaded themselves. */
async function oldestPart(
  db: Database,
  { scopeId, keepHours, days }: { scopeId: number; keepHours: number; days: number },
): Promise<{ from: string; to: string } | undefined> {
  const { rows } = await sql<{ from: string; to: string }>`
    select lower(part)::text as "from", least(upper(part), lower(part) + make_interval(days => ${days}))::text as "to"
    from (
      select range_agg(tstzrange(h.period_start, h.period_end))
             * tstzmultirange(tstzrange(null, ${keptFrom(keepHours)}))
             * (
               select range_agg(tstzrange(d.period_start, d.period_end))
               from usage.scope s
               join usage.scope p using (source_id, kind, trace_tier, group_by, workspace_id)
               join usage.coverage d on d.scope_id = p.scope_id
               where s.scope_id = ${scopeId} and p.stride = 'day'
             ) as parts
      from usage.coverage h
      where h.scope_id = ${scopeId} and h.fetched_at < now() - make_interval(days => ${FETCHED_DAYS_AGO})
    ) old
    cross join lateral unnest(parts) part
    order by lower(part)
    limit 1
  `.execute(db);
  return rows[0];
}
