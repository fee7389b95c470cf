import { addDays, type Days, daysBetween } from "../../core/domain/time/days.ts";
import type { Interval } from "../../core/domain/time/window.ts";
import type { DayAmount } from "../../core/domain/usage/forecast.ts";
import type { GroupBy } from "../../core/domain/usage/record.ts";
import { type Database, query, queryValues } from "../../core/store/db/query.ts";
import { COVERAGE_VERSION, loadedDays } from "../../core/store/figures/loaded.ts";
import { cellsOf, recordsIn, type UsageOf } from "../../core/store/figures/records.ts";

export interface WorkspaceDays {
  readonly id: string;
  readonly name: string | null;
  readonly days: readonly DayAmount[];
}

/** Changes when usage is loaded, withdrawn, failed or forgotten, when an owner file is applied, and with the day (UTC). */
export async function usageVersion(db: Database): Promise<string> {
  const [version] = await queryValues<string>(db)`
    select concat_ws(' ', current_database(), (now() at time zone 'UTC')::date, ${COVERAGE_VERSION}, (select applied_at from usage.owner_file)) as version
  `;
  return version ?? "";
}

export async function workspaceDays(
  db: Database,
  source: Pick<UsageOf, "sourceId" | "source">,
  range: Days,
): Promise<WorkspaceDays[]> {
  const cells = { ...source, by: "workspace", workspaceId: null } as const;
  const loaded = await loadedDays(db, cells, range);
  const of = { ...cells, byHours: loaded.some(({ byHours }) => byHours) };
  const rows = await query<{ key: number; traces: Readonly<Record<string, number>> }>(db)`
    with ${cellsOf(of)},
    used as (select key, bucket, sum(traces) as traces from (${recordsIn(of, { ...range, per: "day" })}) r group by key, bucket)
    select key, json_object_agg(bucket, traces) as traces from used group by key
  `;
  const used = new Map(rows.map(({ key, traces }) => [key, traces]));
  const days = Array.from({ length: daysBetween(range) }, (_, n) => {
    const day = addDays(range.from, n);
    return { day, start: Date.parse(day) };
  });
  return loaded.map(({ key, workspaceId, name, loaded, final }) => ({
    id: workspaceId,
    name,
    days: days.map(({ day, start }) => ({
      day,
      amount: covers(loaded, start) ? (used.get(key)?.[day] ?? 0) : null,
      isFinal: covers(final, start),
    })),
  }));
}

function covers(intervals: readonly Interval[], at: number): boolean {
  return intervals.some(({ start, end }) => start <= at && at < end);
}

/** The id that explains most of the difference between a day and the other days of its workspace. */
export interface DayPart {
  readonly by: Exclude<GroupBy, "workspace">;
  readonly id: string;
  /** Null unless a project: a user's name is an address. */
  readonly name: string | null;
  readonly more: number;
}

export interface RequestedDay {
  readonly source: string;
  readonly workspaceId: string;
  readonly day: string;
  readonly others: readonly string[];
  /** Expected traces, as a factor of those of the other days. */
  readonly factor: number;
  /** 1: the largest increase; -1: the largest decrease. */
  readonly sign: number;
}

/** One part for each day and dimension, unless the dimension is not loaded on one of the days. */
export async function partsOfDays(db: Database, requested: readonly RequestedDay[]): Promise<DayPart[][]> {
  if (requested.length === 0) return [];
  const rows = await query<DayPart & { readonly n: number }>(db)`
    with asked as materialized (
      select a.n, c.group_by, c.day_scope_id, a.day, t.days, a.factor, a.sign
      from json_to_recordset(${JSON.stringify(requested.map((one, n) => ({ n, ...one })))}::json) as
             a (n integer, source text, "workspaceId" text, day date, others date[], factor float8, sign integer)
      cross join lateral (select a.others || a.day as days) t
      join usage.trace_cell c on c.slug = a.source and c.workspace_id = a."workspaceId" and c.group_by <> 'workspace'
      where not exists (select from unnest(t.days) d where not c.loaded @> d)
    ),
    of_hours as materialized (
      select day_scope_id, entity_id, usage_date, traces from usage.figure_of_hours
      where group_by <> 'workspace' and usage_date >= (select min(d) from asked, unnest(days) d)
    ),
    part as (
      select a.n, a.group_by, r.entity_id, a.sign,
             (coalesce(sum(r.traces) filter (where r.day = a.day), 0)
               - a.factor * coalesce(sum(r.traces) filter (where r.day <> a.day), 0))::float8 as more
      from asked a
      cross join lateral (
        select s.entity_id, r.bucket_start as day, r.traces
        from usage.series s join usage.dated_record r using (series_id)
        where s.scope_id = a.day_scope_id and r.bucket_start = any(a.days)
        union all
        select entity_id, usage_date, traces from of_hours o where o.day_scope_id = a.day_scope_id and o.usage_date = any(a.days)
      ) r
      group by a.n, a.group_by, r.entity_id, a.sign, a.factor
    ),
    first as materialized (
      select distinct on (p.n, p.group_by) p.n, p.group_by, p.entity_id, p.more
      from part p join usage.entity e using (entity_id)
      where e.external_id <> ''
      order by p.n, p.group_by, p.more * p.sign desc, usage.shown_id(e.external_id) collate "C"
    )
    select f.n, f.group_by as by, usage.shown_id(e.external_id) as id, f.more,
           case when f.group_by = 'project' then (
             select n.name from usage.entity_name n where n.entity_id = f.entity_id
             order by n.fetch_number desc limit 1
           ) end as name
    from first f join usage.entity e using (entity_id)
    order by f.n, usage.dimension_position(f.group_by)
  `;
  const found = Map.groupBy(rows, ({ n }) => n);
  return requested.map((_, n) => (found.get(n) ?? []).map(({ n: _n, ...part }) => part));
}
