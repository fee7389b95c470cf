import { type RawBuilder, sql } from "kysely";
import { lengthOf } from "../catalog/scopes.ts";
import { type ChangedTime, endProof } from "../coverage/proved-time.ts";
import { type Database, query } from "../db/query.ts";
import { FETCH_END } from "../work/fetch-ledger.ts";

interface Invalidated {
  /** Selects the scope's id, the time (`tstzmultirange`) and `since` (`timestamptz`): later responses prove no zero. */
  readonly time: RawBuilder<unknown>;
  /** When the loss of access was noticed, by Postgres's clock, epoch ms. */
  readonly noticedAt: number;
}

const MESSAGE =
  "Zeros were withdrawn: since they were loaded, nothing has proven that the key has access to this workspace.";

/**
 * Invalidates zeros (rule 4 of docs/rules.md). Time loaded without any record becomes `unverified` and loses its proof, so it
 * is fetched again. Records stay, even those of zero. The caller holds the locks of the scopes. A response that was requested
 * before `since` and came later proves a zero only if it has records of the scope. `usage.withdrawal` keeps the invalidated
 * time with its entry in the log of final days, for as-of queries. Returns the number of daily zeros of the meter `traces` by
 * workspace.
 */
export async function invalidateZerosOf(
  db: Database,
  { time, noticedAt }: Invalidated,
): Promise<Map<number, number>> {
  // The instant must be later than the locks, because as-of queries rely on that.
  const at = sql`(select usage.load_instant())`;
  const noticed = sql`${new Date(noticedAt)}::timestamptz`;
  const rows = await query<ChangedTime & { workspaceId: number; zeros: number }>(db)`
    with loaded as materialized (
      select c.scope_id, c.period_start, t.whole, t.whole * d.within - coalesce(r.parts, '{}') as parts,
             c.fetched_at > d.since or bool_and(r.parts is null) over (partition by c.scope_id, c.fetch_number) as is_invalidated
      from (${time}) d (scope_id, within, since)
      join usage.scope s using (scope_id)
      join usage.coverage c on c.scope_id = d.scope_id and (c.fetched_at > d.since or exists (
        select from usage.fetch f
        where f.fetch_number = c.fetch_number and ${FETCH_END} > d.since
      ))
      cross join lateral (select tstzmultirange(tstzrange(c.period_start, c.period_end)) as whole) t
      cross join lateral (
        select range_agg(tstzrange(b.start, b.start + ${lengthOf(sql`s.stride`)})) as parts
        from usage.series x
        cross join lateral (
          select h.bucket_start as start from usage.hourly_record h
          where s.stride = 'hour' and h.series_id = x.series_id
            and h.bucket_start >= c.period_start and h.bucket_start < c.period_end
          union all
          select r.bucket_start::timestamp at time zone 'UTC' from usage.dated_record r
          where s.stride <> 'hour' and r.series_id = x.series_id
            and r.bucket_start >= (c.period_start at time zone 'UTC')::date
            and r.bucket_start < (c.period_end at time zone 'UTC')::date
        ) b
        where x.scope_id = c.scope_id
      ) r
      where t.whole && d.within
    ), removed as (
      delete from usage.coverage c using loaded l
      where c.scope_id = l.scope_id and c.period_start = l.period_start and l.is_invalidated and not isempty(l.parts)
      returning c.*, l.whole, l.parts
    ), kept as (
      insert into usage.coverage (scope_id, period_start, period_end, final, fetch_number, fetched_at, traced)
      select scope_id, lower(part), upper(part), final, fetch_number, fetched_at, traced * tstzmultirange(part)
      from removed cross join lateral unnest(whole - parts) part
    ), logged as (
      delete from usage.became_final t
      using (select scope_id, range_agg(parts) as parts from removed where final group by scope_id) z
      where t.scope_id = z.scope_id and tstzrange(t.period_start, t.period_end) && z.parts
      returning t.scope_id, t.final_at, tstzmultirange(tstzrange(t.period_start, t.period_end)) as whole, z.parts
    ), still_logged as (
      insert into usage.became_final (scope_id, period_start, period_end, final_at)
      select scope_id, lower(part), upper(part), final_at from logged cross join lateral unnest(whole - parts) part
    ), history as (
      insert into usage.withdrawal (scope_id, period_start, period_end, final, final_at, invalidated_at)
      select scope_id, lower(part), upper(part), true, final_at, ${at}
      from logged cross join lateral unnest(whole * parts) part
      union all
      select r.scope_id, lower(part), upper(part), r.final, null, ${at}
      from removed r
      left join (select scope_id, range_agg(whole) as parts from logged group by scope_id) l using (scope_id)
      cross join lateral unnest(r.parts - coalesce(l.parts, '{}')) part
    ), failed as (
      insert into usage.failure
        (scope_id, period_start, period_end, state, code, message, attempts, fetch_number, failed_at, retry_at)
      select r.scope_id, lower(part), upper(part), 'unverified', 'workspace_unverified', ${MESSAGE}, 1, r.fetch_number,
             ${noticed}, ${noticed} + interval '1 hour'
      from removed r
      left join (
        select scope_id, range_agg(tstzrange(period_start, period_end)) as parts
        from usage.failure where scope_id in (select scope_id from removed) group by scope_id
      ) f using (scope_id)
      cross join lateral unnest(r.parts - coalesce(f.parts, '{}')) part
    )
    select c.scope_id as "scopeId", c.workspace_id as "workspaceId", c.parts::text,
           case when t.stride = 'day' then usage.count_days(usage.whole_days(c.parts)) else 0 end as zeros
    from (
      select scope_id, workspace_id, range_agg(r.parts) as parts
      from removed r join usage.scope using (scope_id) group by 1, 2
    ) c
    left join usage.trace_scope t using (scope_id)
  `;
  await endProof(db, rows);
  const zeros = new Map<number, number>();
  for (const row of rows) zeros.set(row.workspaceId, (zeros.get(row.workspaceId) ?? 0) + row.zeros);
  return zeros;
}
