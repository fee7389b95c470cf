import { type RawBuilder, sql } from "kysely";
import type { FetchToken } from "../../domain/coverage/finality.ts";
import { spanOf } from "../../domain/time/intervals.ts";
import type { Interval, Window } from "../../domain/time/window.ts";
import { clearTime, multirange, overlaps, type ScopeTime } from "../catalog/scope-time.ts";
import type { Database } from "../db/query.ts";
import { FETCH_END } from "../work/fetch-ledger.ts";

/**
 * Writes which time is proved: `usage.reconciled` by exports, `usage.matched_total` by totals. A module that writes these or
 * the differences renews `usage.day_proof` in the same transaction (`keepProof`, `keepingProof`).
 */

export async function keepProof(db: Database, scopeIds: readonly number[]): Promise<void> {
  await sql`select usage.keep_proof(${scopeIds}::integer[])`.execute(db);
}

/** Returns one statement that makes a change and stores the proof of the scopes whose `scope_id` the change returns. */
export function keepingProof(change: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
    with changed as (${change})
    select usage.keep_proof(array_agg(distinct scope_id)) from changed`;
}

/**
 * Marks a window as compared, without the buckets that still have a difference. The newest export wins, in any order of
 * arrival. The caller holds the lock of the scopes and stores their proof.
 */
export async function markReconciled(
  db: Database,
  marked: { window: Window; fetchToken: FetchToken; scopeIds: readonly number[] },
): Promise<void> {
  const { window, fetchToken, scopeIds } = marked;
  const time = { scopeIds, period: window };
  // Rows that still overlap are of newer exports.
  await clearTime(db, "reconciled", { ...time, olderThan: fetchToken.fetchNumber });
  await sql`
    with newer as (
      select scope_id, range_agg(tstzrange(period_start, period_end)) as parts
      from usage.reconciled where ${overlaps(time)}
      group by scope_id
    ), unresolved as (
      select scope_id, range_agg(tstzrange(period_start, period_end)) as parts
      from usage.difference
      where compared_with = 'export' and state in ('open', 'platform_disagrees') and ${overlaps(time)}
      group by scope_id
    )
    insert into usage.reconciled (scope_id, period_start, period_end, fetch_number, reconciled_at)
    select scope_id, lower(part), upper(part), ${fetchToken.fetchNumber}, ${new Date(fetchToken.fetchedAt)}
    from unnest(${scopeIds}::integer[]) s (scope_id)
    left join newer using (scope_id)
    left join unresolved using (scope_id)
    cross join lateral unnest(
      ${multirange(window)} - coalesce(newer.parts, '{}') - coalesce(unresolved.parts, '{}')
    ) part
  `.execute(db);
}

/**
 * Marks parts whose totals equal the stored days. The newest total wins, in any order of arrival. The caller holds the lock
 * of the scopes.
 */
export async function markMatched(
  db: Database,
  matched: {
    scopeIds: readonly number[];
    parts: readonly Interval[];
    fetchToken: FetchToken;
    differing: readonly { scopeId: number; part: number }[];
  },
): Promise<void> {
  const { scopeIds, parts, fetchToken, differing } = matched;
  const { fetchNumber } = fetchToken;
  // Rows that still overlap are of newer totals.
  await clearTime(db, "matched_total", { scopeIds, period: spanOf(parts), olderThan: fetchNumber });
  const isDifferent = new Set(differing.map(({ scopeId, part }) => `${scopeId} ${part}`));
  const equal = scopeIds.flatMap((scope_id) =>
    parts.flatMap(({ start, end }, n) =>
      isDifferent.has(`${scope_id} ${n + 1}`)
        ? []
        : [{ scope_id, start: new Date(start), end: new Date(end) }],
    ),
  );
  await sql`
    insert into usage.matched_total (scope_id, period_start, period_end, total_start, total_end, fetch_number, matched_at)
    select e.scope_id, lower(part), upper(part), e.start, e."end", ${fetchNumber}, ${new Date(fetchToken.fetchedAt)}
    from json_to_recordset(${JSON.stringify(equal)}::json) e (scope_id integer, start timestamptz, "end" timestamptz)
    cross join lateral unnest(tstzmultirange(tstzrange(e.start, e."end")) - coalesce((
      select range_agg(tstzrange(m.period_start, m.period_end)) from usage.matched_total m
      where m.scope_id = e.scope_id and m.period_start < e."end" and m.period_end > e.start
    ), '{}')) part
  `.execute(db);
  await keepProof(db, scopeIds);
}

export async function clearProof(db: Database, time: ScopeTime): Promise<void> {
  const exported = await clearTime(db, "reconciled", time);
  const totalled = await clearTime(db, "matched_total", time);
  const scopeIds = [...exported, ...totalled].map(({ scope_id }) => scope_id);
  if (scopeIds.length > 0) await keepProof(db, scopeIds);
}

export interface ChangedTime {
  readonly scopeId: number;
  readonly parts: string;
}

/**
 * Ends the proof of changed time: by the export for the changed parts, by totals for all days of each total. So every stored
 * proof is true. `restatedBy`: number of the response that restated counts of the time. It also ends the proof of the hours of
 * changed days, unless a newer export proved them: hours are another response. The proof of the time itself ends whatever its
 * number, because a response may be requested before an export and stored after it. The caller holds the locks of the scopes.
 */
export async function endProof(
  db: Database,
  changed: readonly ChangedTime[],
  { restatedBy = null }: { restatedBy?: number | null } = {},
): Promise<void> {
  if (changed.length === 0) return;
  await sql`
    with given as (
      select "scopeId" as scope_id, parts
      from json_to_recordset(${JSON.stringify(changed)}::json) g ("scopeId" integer, parts tstzmultirange)
    ), ended as (
      select scope_id, parts, null::bigint as before from given
      union all
      select h.scope_id, g.parts, ${restatedBy}
      from given g
      join usage.scope d on d.scope_id = g.scope_id and d.stride = 'day'
      join usage.scope h
        on h.source_id = d.source_id and h.kind = d.kind and h.trace_tier = d.trace_tier
       and h.group_by = d.group_by and h.workspace_id = d.workspace_id and h.stride = 'hour'
      where ${restatedBy}::bigint is not null
    ), untotalled as (
      delete from usage.matched_total m using ended e
      where m.scope_id = e.scope_id and tstzrange(m.total_start, m.total_end) && e.parts
      returning m.scope_id
    ), unproved as (
      delete from usage.reconciled r using ended e
      where r.scope_id = e.scope_id and (e.before is null or r.fetch_number < e.before)
        and tstzrange(r.period_start, r.period_end) && e.parts
      returning r.*, e.parts
    ), still_proved as (
      insert into usage.reconciled (scope_id, period_start, period_end, fetch_number, reconciled_at)
      select scope_id, lower(part), upper(part), fetch_number, reconciled_at
      from unproved cross join lateral unnest(tstzmultirange(tstzrange(period_start, period_end)) - parts) part
      returning scope_id
    )
    select usage.keep_proof(array_agg(distinct scope_id))
    from (
      select scope_id from untotalled
      union all select scope_id from unproved
      union all select scope_id from still_proved
    ) c
  `.execute(db);
}

/** Ends the proof of workspaces by exports or totals that came, or were under way, after access was last proven. */
export async function endUnprovenAccess(db: Database, workspaceIds: readonly number[]): Promise<void> {
  for (const [table, at] of [
    ["reconciled", "reconciled_at"],
    ["matched_total", "matched_at"],
  ] as const) {
    await keepingProof(sql`
      delete from ${sql.id("usage", table)} r
      using usage.scope s join usage.workspace w on w.entity_id = s.workspace_id
      where s.scope_id = r.scope_id and w.entity_id = any (${workspaceIds}::integer[]) and (
        ${sql.ref(`r.${at}`)} > w.readable_at or exists (
          select from usage.fetch f
          where f.fetch_number = r.fetch_number and ${FETCH_END} > w.readable_at
        )
      )
      returning r.scope_id
    `).execute(db);
  }
}
