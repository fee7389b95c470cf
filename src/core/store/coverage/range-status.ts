import type { RangeLine } from "../../domain/coverage/range-status.ts";
import { STRIDES, type Stride } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import type { Meter } from "../../domain/usage/meter.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import { isOfMeter } from "../catalog/scopes.ts";
import { epochMs } from "../db/expressions.ts";
import { type Database, query } from "../db/query.ts";

interface RequestedRange {
  readonly sourceId: number;
  readonly meter: Meter;
  readonly groupings: readonly GroupBy[];
  readonly workspaceIds: readonly string[];
  readonly wanted: readonly {
    readonly stride: Stride;
    readonly range: Interval;
    readonly isUnavailable: boolean;
  }[];
}

/**
 * Returns the status of a requested range. The lines of a dimension and stride add up to the whole range. A part has the first
 * status that applies of not available, failed or unverified, final, provisional. Missing time is searched in the finer
 * strides, which load time that is too short for the stride's tier. A day is loaded by hours if all 24 are loaded.
 */
export async function rangeStatus(
  db: Database,
  { sourceId, meter, groupings, workspaceIds, wanted }: RequestedRange,
): Promise<RangeLine[]> {
  if (wanted.length === 0) return [];
  const rankOf = (stride: Stride) => STRIDES.indexOf(stride) + 1;
  return query<RangeLine>(db)`
    with wanted as (
      select n, stride, rank, is_unavailable, tstzrange(starts, ends) as range
      from unnest(
        ${wanted.map(({ stride }) => stride)}::text[], ${wanted.map(({ stride }) => rankOf(stride))}::integer[],
        ${wanted.map(({ range }) => new Date(range.start))}::timestamptz[],
        ${wanted.map(({ range }) => new Date(range.end))}::timestamptz[],
        ${wanted.map(({ isUnavailable }) => isUnavailable)}::boolean[]
      ) with ordinality w (stride, rank, starts, ends, is_unavailable, n)
    ), scope as materialized (
      select s.scope_id, s.workspace_id, s.group_by, r.rank, coalesce(usage.time_of(d.loaded), h.loaded, '{}') as loaded,
             coalesce(usage.time_of(d.final), h.final, '{}') as final,
             coalesce(usage.time_of(d.failed + d.unverified), '{}') as failed, usage.time_of(h.whole_days) as whole,
             usage.time_of(h.whole_final_days) as whole_final
      from usage.scope s
      join usage.entity e on e.entity_id = s.workspace_id
      cross join lateral array_position(${STRIDES}::text[], s.stride) r (rank)
      left join usage.day_state d using (scope_id)
      left join usage.hour_state h using (scope_id)
      where s.source_id = ${sourceId} and ${isOfMeter("s", meter)}
        and s.group_by = any (${groupings}::text[]) and e.external_id = any (${workspaceIds}::text[])
        and r.rank <= (select max(rank) from wanted)
    ), own as materialized (
      -- Each time belongs to the coarsest stride that has it, or in which it failed.
      select f.n, f.scope_id, range_agg(f.loaded - f.failed) as loaded, range_agg(f.final - f.coarser - f.failed) as final
      from (
        select v.n, v.scope_id, v.loaded, v.final, range_agg(v.failed) over (v order by v.rank desc) as failed,
               coalesce(range_agg(v.loaded) over (v order by v.rank desc rows between unbounded preceding and 1 preceding), '{}') as coarser
        from (
          select w.n, s.scope_id, o.rank,
                 case when o.rank = 1 and w.rank > 1 then coalesce(o.whole, '{}') else o.loaded end as loaded,
                 case when o.rank = 1 and w.rank > 1 then coalesce(o.whole_final, '{}') else o.final end as final,
                 case when o.rank = w.rank then '{}' else o.failed end as failed
          from wanted w
          join scope s using (rank)
          join scope o on o.workspace_id = s.workspace_id and o.group_by = s.group_by and o.rank <= w.rank
        ) v
        window v as (partition by v.n, v.scope_id)
      ) f
      group by 1, 2
    ), cell as materialized (
      select w.n, w.stride, w.rank, w.range, s.scope_id, s.workspace_id, s.group_by, x.not_available, x.rest - x.not_available as rest,
             t.loaded, t.final
      from wanted w
      join scope s using (rank)
      join own t using (n, scope_id)
      cross join lateral (
        select tstzmultirange(w.range) as rest, case when w.is_unavailable then tstzmultirange(w.range) - t.loaded else '{}' end as not_available
      ) x
    ), failed as materialized (
      select c.n, c.scope_id, f.state, f.code, f.retry_at, c.rest * tstzmultirange(tstzrange(f.period_start, f.period_end)) as parts
      from cell c
      join usage.failure f using (scope_id)
      where tstzrange(f.period_start, f.period_end) && c.range
    ), open as materialized (
      select c.n, c.scope_id, c.rank, c.workspace_id, c.group_by, c.range, c.rest - coalesce(f.parts, '{}') as rest, c.loaded, c.final
      from cell c
      left join (select n, scope_id, range_agg(parts) as parts from failed group by 1, 2) f using (n, scope_id)
    ), reason as materialized (
      -- Hours have no finer stride. The coarsest and first failure of a day is the reason.
      select distinct on (o.n, o.scope_id, day) o.n, o.scope_id, f.state, f.code, f.retry_at,
             tstzmultirange(tstzrange(day, day + interval '24 hours')) as parts
      from open o
      join scope s on s.workspace_id = o.workspace_id and s.group_by = o.group_by and s.rank < o.rank
      join usage.failure f on f.scope_id = s.scope_id and tstzrange(f.period_start, f.period_end) && o.range
      cross join lateral generate_series(
        date_trunc('day', f.period_start, 'UTC'), f.period_end - interval '1 microsecond', interval '24 hours'
      ) day
      where (o.rest - o.loaded) @> day
      order by o.n, o.scope_id, day, s.rank desc, f.period_start
    ), part as (
      select n, scope_id, 'not_available' as status, null as code, null::timestamptz as retry_at, not_available as parts from cell
      union all
      select n, scope_id, state, code, retry_at, parts from failed
      union all
      select n, scope_id, 'final', null, null, rest * final from open
      union all
      select n, scope_id, 'provisional', null, null, rest * loaded - final from open
      union all
      select n, scope_id, state, code, retry_at, parts from reason
      union all
      select o.n, o.scope_id, 'missing', null, null, o.rest - o.loaded - coalesce(r.parts, '{}')
      from open o
      left join (select n, scope_id, range_agg(parts) as parts from reason group by 1, 2) r using (n, scope_id)
    )
    select ${meter}::text as meter, c.group_by as "groupBy", c.stride, p.status, p.code,
           sum(ceil(extract(epoch from upper(u.part) - lower(u.part)) / case c.stride when 'hour' then 3600 else 86400 end))::integer
             as buckets,
           ${epochMs("min(lower(u.part))")} as first,
           ${epochMs("max(upper(u.part))")} as "end",
           ${epochMs("min(p.retry_at)")} as "retryAt"
    from part p
    join cell c using (n, scope_id)
    cross join lateral unnest(p.parts) u (part)
    group by c.stride, c.rank, c.group_by, p.status, p.code
    order by min(c.n), usage.dimension_position(c.group_by),
             array_position(array['not_available', 'failed', 'unverified', 'final', 'provisional', 'missing'], p.status), p.code
  `;
}
