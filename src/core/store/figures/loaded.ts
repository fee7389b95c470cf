import { type RawBuilder, sql } from "kysely";
import type { Days } from "../../domain/time/days.ts";
import type { Interval } from "../../domain/time/window.ts";
import { isIfGiven } from "../db/expressions.ts";
import { type Database, query } from "../db/query.ts";
import { type Counted, meterOfCounted } from "./counted.ts";
import { cellsOf, midnight, type UsageCells } from "./records.ts";

export interface LoadedWorkspace {
  readonly key: number;
  readonly workspaceId: string;
  readonly name: string | null;
  readonly loaded: readonly Interval[];
  /** Final time. Only a restatement changes its figures. */
  readonly final: readonly Interval[];
  /** Final, and equal to the export or to totals. */
  readonly proved: readonly Interval[];
  readonly byHours: boolean;
}

/** SQL: changes whenever time is loaded, invalidated, failed or forgotten. */
export const COVERAGE_VERSION = sql`concat_ws(' ', (
  select concat_ws(' ', count(*), sum(fetch_number), max(fetched_at), sum(period_end - period_start), count(*) filter (where final))
  from usage.coverage
), (select concat_ws(' ', count(*), max(failed_at)) from usage.failure))`;

const PROVED_DAYS = sql`coalesce(p.compared + p.totalled - p.differing, '{}')`;

export async function loadedDays(
  db: Database,
  of: UsageCells,
  { from, to }: Days,
): Promise<LoadedWorkspace[]> {
  return query<LoadedWorkspace>(db)`
    with ${cellsOf(of)}
    select c.workspace_id as key, x.workspace_id as "workspaceId", x.workspace_name as name,
           ${intervalsOf(sql`x.loaded * t.span`)} as loaded, ${intervalsOf(sql`x.final * t.span`)} as final,
           ${intervalsOf(sql`${PROVED_DAYS} * x.final * t.span`)} as proved,
           not isempty(x.days_of_hours * t.span) as "byHours"
    from usage.trace_cell x
    join cell c using (day_scope_id)
    left join usage.day_proof p on p.scope_id = x.day_scope_id
    cross join lateral (select datemultirange(daterange(${from}::date, ${to}::date)) as span) t
    where x.slug = ${of.source} and x.group_by = ${of.by}
    order by x.workspace_id collate "C"
  `;
}

/**
 * Days of other meters, as their views show them: hours never replace a day, and a day whose units are unknown is not
 * there.
 */
export async function loadedMeterDays(
  db: Database,
  of: UsageCells & { readonly counted: Counted },
  { from, to }: Days,
): Promise<LoadedWorkspace[]> {
  return query<LoadedWorkspace>(db)`
    select x.workspace_entity_id as key, x.workspace_id as "workspaceId", x.workspace_name as name,
           ${intervalsOf(sql`usage.time_of(x.loaded - u.days) * t.span`)} as loaded,
           ${intervalsOf(sql`usage.time_of(x.final - u.days) * t.span`)} as final,
           ${intervalsOf(sql`usage.time_of(case when u.is_standard then '{}' else ${PROVED_DAYS} * x.final end) * t.span`)} as proved,
           false as "byHours"
    from usage.day_cell x
    left join usage.day_proof p on p.scope_id = x.day_scope_id
    cross join lateral (select tstzmultirange(tstzrange(${midnight(from)}, ${midnight(to)})) as span) t
    cross join lateral (
      select usage.is_standard_unit(${of.counted}) as is_standard, coalesce(range_agg(daterange(o.usage_date, o.usage_date + 1)), '{}') as days
      from usage.unknown_unit o
      where usage.is_standard_unit(${of.counted}) and o.scope_id = x.day_scope_id and o.measure = ${of.counted}
        and o.usage_date >= ${from}::date and o.usage_date < ${to}::date
    ) u
    where x.slug = ${of.source} and x.meter = ${meterOfCounted(of.counted)} and x.group_by = ${of.by}
      and ${isIfGiven("x.workspace_entity_id", of.workspaceId)}
    order by x.workspace_id collate "C"
  `;
}

export async function loadedForCosts(
  db: Database,
  { sourceId, workspaceId }: UsageCells,
  { from, to }: Days,
): Promise<LoadedWorkspace[]> {
  const all = (days: RawBuilder<unknown>) =>
    sql`usage.time_of(range_intersect_agg(case when c.meter = 'traces' then ${days} else ${days} + ('{(,)}' - c.expected) end)) * t.span`;
  return query<LoadedWorkspace>(db)`
    with priced as materialized (
      select distinct unnest(usage.meters_of_measure(meter)) as meter from usage.priced_meter
    )
    select w.entity_id as key, w.workspace_id as "workspaceId", w.workspace_name as name, ${intervalsOf(all(sql`c.loaded`))} as loaded,
           ${intervalsOf(all(sql`c.final`))} as final, ${intervalsOf(all(sql`c.proved`))} as proved, false as "byHours"
    from usage.bill_cell c
    join usage.shown_workspace w on w.entity_id = c.workspace_entity_id
    cross join lateral (select tstzmultirange(tstzrange(${midnight(from)}, ${midnight(to)})) as span) t
    where c.source_id = ${sourceId} and (c.meter = 'traces' or c.meter in (select meter from priced))
      and ${isIfGiven("c.workspace_entity_id", workspaceId)}
    group by w.entity_id, w.workspace_id, w.workspace_name, t.span
    order by w.workspace_id collate "C"
  `;
}

export async function isLoadedByHour(db: Database, sourceId: number, { from, to }: Days): Promise<boolean> {
  const rows = await query(db)`
    select from usage.trace_scope c join usage.coverage v using (scope_id)
    where c.source_id = ${sourceId} and c.stride = 'hour' and v.period_start < ${midnight(to)} and v.period_end > ${midnight(from)}
    limit 1
  `;
  return rows.length > 0;
}

export async function loadedHours(
  db: Database,
  of: UsageCells,
  { from, to }: Days,
): Promise<LoadedWorkspace[]> {
  return query<LoadedWorkspace>(db)`
    with ${cellsOf(of)}
    select c.workspace_id as key, w.dimension_id as "workspaceId", w.dimension_name as name,
           ${intervalsOf(sql`h.loaded * t.span`)} as loaded, ${intervalsOf(sql`h.final * t.span`)} as final,
           ${intervalsOf(sql`coalesce(p.parts, '{}') * h.final * t.span`)} as proved, false as "byHours"
    from cell c
    join usage.labelled_entity w on w.entity_id = c.workspace_id
    left join usage.hour_state h on h.scope_id = c.hour_scope_id
    left join usage.hour_proof p on p.scope_id = c.hour_scope_id
    cross join lateral (select tstzmultirange(tstzrange(${midnight(from)}, ${midnight(to)})) as span) t
    order by w.dimension_id collate "C"
  `;
}

function intervalsOf(multirange: RawBuilder<unknown>): RawBuilder<unknown> {
  const epochMs = (bound: RawBuilder<unknown>) => sql`(extract(epoch from ${bound}) * 1000)::bigint`;
  return sql`(
    select coalesce(json_agg(json_build_object('start', ${epochMs(sql`lower(p)`)}, 'end', ${epochMs(sql`upper(p)`)}) order by p), '[]')
    from unnest(${multirange}) p
  )`;
}
