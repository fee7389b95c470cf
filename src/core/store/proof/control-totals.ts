import { sql } from "kysely";
import type { FetchToken } from "../../domain/coverage/finality.ts";
import type { Interval } from "../../domain/time/window.ts";
import { type Measure, STANDARD_UNITS } from "../../domain/usage/meter.ts";
import { overlaps } from "../catalog/scope-time.ts";
import { lockScopes } from "../catalog/scopes.ts";
import { markMatched } from "../coverage/proved-time.ts";
import type { Store } from "../db/database.ts";
import { epochMs } from "../db/expressions.ts";
import { query, queryValues, type Row } from "../db/query.ts";

export interface ControlTotal {
  readonly scopeId: number;
  readonly part: number;
  readonly dimensionId: string;
  readonly measure: Measure;
  readonly traces: number;
}

export interface TotalDifference
  extends Interval,
    Row<"usage.difference", "scopeId" | "measure" | "storedTraces"> {
  readonly controlTraces: number | null;
  readonly dimensionId: string;
}

/**
 * `compared`: scopes whose time is all final and was not loaded again after the totals were requested. Standard units differ only
 * where both sides have a number for every item.
 */
export async function compareTotals(
  store: Store,
  requested: {
    scopeIds: readonly number[];
    parts: readonly Interval[];
    totals: readonly ControlTotal[];
    fetchToken: FetchToken;
  },
): Promise<{ compared: number[]; differences: TotalDifference[] }> {
  const { parts, totals } = requested;
  const [from, to] = [Math.min(...parts.map((p) => p.start)), Math.max(...parts.map((p) => p.end))];
  return store.transaction(async ({ db }) => {
    // Loads of these scopes wait, so that coverage and records belong to the same moment.
    await lockScopes(db, requested.scopeIds);
    const final = await queryValues<Row<"usage.coverage">["scopeId"]>(db)`
      select scope_id from usage.coverage
      where ${overlaps({ scopeIds: requested.scopeIds, period: { start: from, end: to } })}
        and final and fetch_number < ${requested.fetchToken.fetchNumber}
      group by scope_id
      having sum(least(period_end, ${new Date(to)}) - greatest(period_start, ${new Date(from)}))
        = ${new Date(to)}::timestamptz - ${new Date(from)}::timestamptz
    `;
    const compared = final.sort((a, b) => a - b);
    const rows = await query<Omit<TotalDifference, "start" | "end"> & { part: number }>(db)`
      with part as (
        select n::integer as part, (p.from at time zone 'UTC')::date as first, (p.to at time zone 'UTC')::date as after
        from unnest(${parts.map((p) => new Date(p.start))}::timestamptz[], ${parts.map((p) => new Date(p.end))}::timestamptz[])
          with ordinality p ("from", "to", n)
      ), control as (
        select c.scope_id, c.part + 1 as part, c.external_id, c.measure, sum(c.traces)::bigint as traces
        from unnest(
          ${totals.map((t) => t.scopeId)}::integer[], ${totals.map((t) => t.part)}::integer[],
          ${totals.map((t) => t.dimensionId)}::text[], ${totals.map((t) => t.measure)}::text[],
          ${totals.map((t) => t.traces)}::bigint[]
        ) c (scope_id, part, external_id, measure, traces)
        where c.scope_id = any (${compared}::integer[])
        group by 1, 2, 3, 4
      ), stored as (
        select x.scope_id, p.part, e.external_id, x.measure, sum(r.traces)::bigint as traces, count(*) as records
        from usage.series x
        join usage.entity e using (entity_id)
        join usage.dated_record r using (series_id)
        join part p on r.bucket_start >= p.first and r.bucket_start < p.after
        where x.scope_id = any (${compared}::integer[])
        group by 1, 2, 3, 4
      )
      select scope_id as "scopeId", part, external_id as "dimensionId", measure, stored.traces as "storedTraces",
             control.traces as "controlTraces"
      from stored full join control using (scope_id, part, external_id, measure)
      where coalesce(stored.traces, 0) <> coalesce(control.traces, 0) and (measure <> all (${STANDARD_UNITS}::text[])
        or control.traces is not null and stored.records is not distinct from (
          select o.records from stored o
          where o.scope_id = control.scope_id and o.part = control.part and o.external_id = control.external_id and o.measure = 'lcu'
        ))
      order by scope_id, part, external_id, measure
    `;
    await markMatched(db, { scopeIds: compared, parts, fetchToken: requested.fetchToken, differing: rows });
    return {
      compared,
      differences: rows.map(({ part, ...row }) => {
        const { start, end } = parts[part - 1] as Interval;
        return { ...row, start, end };
      }),
    };
  });
}

export interface GroupingDifference extends TotalDifference {
  readonly totalScopeId: number;
}

export async function compareGroupings(
  store: Store,
  {
    scopeIds,
    measures,
    range,
  }: { scopeIds: readonly number[]; measures: readonly Measure[]; range: Interval },
): Promise<GroupingDifference[]> {
  const ids = sql`any (${scopeIds}::integer[])`;
  const [from, to] = [range.start, range.end].map((at) => sql`${new Date(at)}::timestamptz`);
  return store.transaction(async ({ db }) => {
    return query<GroupingDifference>(db)`
      with pair as (
        select g.scope_id, w.scope_id as total_scope_id
        from usage.scope g
        join usage.scope w
          on w.source_id = g.source_id and w.kind = g.kind and w.trace_tier = g.trace_tier
         and w.workspace_id = g.workspace_id and w.stride = 'day' and w.group_by = 'workspace'
        where g.scope_id = ${ids} and g.group_by <> 'workspace'
      ), day as (
        select pair.*, m.measure, d::date as usage_date
        from pair
        cross join unnest(${measures}::text[]) m (measure)
        join usage.coverage a on a.scope_id = pair.scope_id and a.final
        join usage.coverage b
          on b.scope_id = pair.total_scope_id and b.final
         and b.period_start < a.period_end and b.period_end > a.period_start
        cross join lateral generate_series(
          greatest(a.period_start, b.period_start, ${from}) at time zone 'UTC',
          least(a.period_end, b.period_end, ${to}) at time zone 'UTC' - interval '1 day', interval '1 day'
        ) d
      ), total as (
        select x.scope_id, x.measure, r.bucket_start as usage_date, sum(r.traces)::bigint as traces
        from usage.series x
        join usage.dated_record r using (series_id)
        where x.scope_id = ${ids} and r.bucket_start >= (${from} at time zone 'UTC')::date
          and r.bucket_start < (${to} at time zone 'UTC')::date
        group by 1, 2, 3
      )
      select day.scope_id as "scopeId", day.total_scope_id as "totalScopeId", '' as "dimensionId", day.measure,
             coalesce(g.traces, 0) as "storedTraces", coalesce(w.traces, 0) as "controlTraces",
             ${epochMs("day.usage_date")} as start,
             ${epochMs("day.usage_date + 1")} as "end"
      from day
      left join total g on g.scope_id = day.scope_id and g.usage_date = day.usage_date and g.measure = day.measure
      left join total w on w.scope_id = day.total_scope_id and w.usage_date = day.usage_date and w.measure = day.measure
      where coalesce(g.traces, 0) <> coalesce(w.traces, 0) and not exists (
        select from usage.unknown_unit o
        where day.measure = any (${STANDARD_UNITS}::text[]) and o.measure = day.measure and o.usage_date = day.usage_date
          and o.scope_id in (day.scope_id, day.total_scope_id)
      )
      order by day.scope_id, day.usage_date, day.measure
    `;
  });
}
