import { sql } from "kysely";
import type { Interval } from "../../domain/time/window.ts";
import { clearTime } from "../catalog/scope-time.ts";
import { lockScopes } from "../catalog/scopes.ts";
import type { Database, Store } from "../db/database.ts";
import { affected } from "./prune.ts";

/** About how many records one transaction removes: a long one would hold up loads of its scope, vacuum and replicas. */
const BATCH = 50_000;
const MOST_DAYS = 366;
/** No answer takes this long to arrive. Until then, coverage must stay: it fences off older answers. */
const FETCHED_DAYS_AGO = 7;

/**
 * Removes the hours of old days with their coverage, one part of a scope at a time. It keeps the hours of a day that is not
 * loaded itself, because they stand in for the day. Returns how many records were removed.
 */
export async function dropOldHours(
  store: Store,
  { sourceId, keepHours }: { sourceId: number; keepHours: number },
): Promise<number> {
  const { rows: scopes } = await sql<{ scope_id: number }>`
    select scope_id from usage.trace_scope s
    where s.source_id = ${sourceId} and s.stride = 'hour' and exists (
      select from usage.coverage c where c.scope_id = s.scope_id and c.period_start < ${keptFrom(keepHours)}
    )
    order by scope_id
  `.execute(store.db);
  let removed = 0;
  for (const { scope_id: scopeId } of scopes) {
    for (let days = 1; ; ) {
      const records = await dropPart(store, { scopeId, keepHours, days });
      if (records === undefined) break;
      removed += records;
      days = nextLength(days, records);
    }
  }
  return removed;
}

/** Doubles the days after a small part, halves them after one that was too large. */
function nextLength(days: number, records: number): number {
  if (records > BATCH) return Math.max(1, Math.floor(days / 2));
  return records * 2 <= BATCH ? Math.min(MOST_DAYS, days * 2) : days;
}

/** Start of the first UTC day whose hours are kept. */
function keptFrom(keepHours: number) {
  return sql<Date>`date_trunc('day', now() - make_interval(hours => ${keepHours}), 'UTC')`;
}

/** Returns how many records were removed; undefined if nothing old is left. */
async function dropPart(
  store: Store,
  { scopeId, keepHours, days }: { scopeId: number; keepHours: number; days: number },
): Promise<number | undefined> {
  return store.transaction(async ({ db }) => {
    await lockScopes(db, [scopeId]);
    const part = await oldestPart(db, { scopeId, keepHours, days });
    if (part === undefined) return undefined;
    const removed = await sql`
      delete from usage.hourly_record r using usage.series s
      where s.scope_id = ${scopeId} and r.series_id = s.series_id
        and r.bucket_start >= ${new Date(part.start)} and r.bucket_start < ${new Date(part.end)}
    `.execute(db);
    await clearTime(db, "coverage", { scopeIds: [scopeId], period: part });
    // Hours that are loaded again were not compared.
    await clearTime(db, "reconciled", { scopeIds: [scopeId], period: part });
    return affected(removed);
  });
}

/** The first interval of old hours, at most so many days long, whose days are loaded themselves. */
async function oldestPart(
  db: Database,
  { scopeId, keepHours, days }: { scopeId: number; keepHours: number; days: number },
): Promise<Interval | undefined> {
  // Hours, not days: a day of the session's time zone may have 23.
  const { rows } = await sql<{ from: Date; to: Date }>`
    select lower(part) as "from", least(upper(part), lower(part) + make_interval(hours => ${days * 24})) as "to"
    from (
      select range_agg(tstzrange(h.period_start, h.period_end))
             * tstzmultirange(tstzrange(null, ${keptFrom(keepHours)}))
             * (
               select range_agg(tstzrange(d.period_start, d.period_end))
               from usage.trace_scope s
               join usage.trace_scope p using (source_id, group_by, workspace_id)
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
  return rows[0] && { start: rows[0].from.getTime(), end: rows[0].to.getTime() };
}
