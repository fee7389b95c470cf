import { type RawBuilder, sql } from "kysely";
import { type Days, monthsAndDays } from "../../../domain/time/days.ts";
import type { GroupBy } from "../../../domain/usage/record.ts";

/** Whose usage is looked at, and by what. */
export interface UsageOf {
  readonly sourceId: number;
  /** The source's slug. */
  readonly source: string;
  readonly by: GroupBy;
  /** Entity of one workspace; null: all of the source. */
  readonly workspaceId: number | null;
}

/** Size of a bucket; it also says which records are read: those of hours, or those of days and their month totals. */
export type Per = "hour" | "day" | "month";

export interface UsageRange extends Days {
  readonly per: Per;
}

/** WITH item `cell`: the scopes of days and hours of each workspace that the dimension is kept for. */
export function cellsOf({ sourceId, by, workspaceId }: UsageOf): RawBuilder<unknown> {
  return sql`cell as materialized (
    select d.scope_id as day_scope_id, h.scope_id as hour_scope_id, d.workspace_id
    from usage.scope d
    left join usage.scope h
      on h.source_id = d.source_id and h.kind = d.kind and h.trace_tier = d.trace_tier and h.group_by = d.group_by
     and h.workspace_id = d.workspace_id and h.stride = 'hour'
    where d.source_id = ${sourceId} and d.group_by = ${by} and d.stride = 'day' and d.kind = 'traces' and d.trace_tier = 'all'
      and ${workspaceId === null ? sql`true` : sql`d.workspace_id = ${workspaceId}`}
  )`;
}

/**
 * SELECT of the records of a range, as `key` (entity of the id), `bucket` and `traces`. Whole months come from the month
 * totals, so the rows do not grow with the days between. Their sums are those of the views of days or hours.
 */
export function recordsIn(of: UsageOf, range: UsageRange): RawBuilder<unknown> {
  if (range.per === "hour") return hoursIn(of, range);
  const whole = range.per === "day" ? undefined : monthsAndDays(range);
  const days = whole === undefined ? [range] : [whole.before, whole.after];
  const bucket = (column: RawBuilder<unknown>) =>
    range.per === "day" ? column : sql`usage.month_of(${column})`;
  const parts = [
    ...days
      .filter(({ from, to }) => from < to)
      .map(
        ({ from, to }) => sql`
          select ${keyOf(of, sql`s.entity_id`)} as key, ${bucket(sql`r.bucket_start`)} as bucket, r.traces
          from cell c join usage.series s on s.scope_id = c.day_scope_id join usage.dated_record r using (series_id)
          where r.bucket_start >= ${from}::date and r.bucket_start < ${to}::date`,
      ),
    ...(whole === undefined || whole.months.from === whole.months.to
      ? []
      : [
          sql`
          select ${keyOf(of, sql`s.entity_id`)} as key, t.month_start as bucket, t.traces
          from cell c join usage.series s on s.scope_id = c.day_scope_id join usage.monthly_total t using (series_id)
          where t.month_start >= ${whole.months.from}::date and t.month_start < ${whole.months.to}::date`,
        ]),
    // Days that are made of hours are in no record of days.
    sql`
      select ${keyOf(of, sql`f.entity_id`)} as key, ${bucket(sql`f.usage_date`)} as bucket, f.traces
      from usage.figure_of_hours f join cell c using (day_scope_id)
      where f.slug = ${of.source} and f.group_by = ${of.by}
        and f.usage_date >= ${range.from}::date and f.usage_date < ${range.to}::date`,
  ];
  return sql.join(parts, sql` union all `);
}

/** By workspace it is that of the scope: an answer may spell a workspace in two ways. */
function keyOf({ by }: UsageOf, entity: RawBuilder<unknown>): RawBuilder<unknown> {
  return by === "workspace" ? sql`c.workspace_id` : entity;
}

function hoursIn(of: UsageOf, { from, to }: Days): RawBuilder<unknown> {
  return sql`
    select ${keyOf(of, sql`s.entity_id`)} as key, r.bucket_start as bucket, r.traces
    from cell c join usage.series s on s.scope_id = c.hour_scope_id join usage.hourly_record r using (series_id)
    where r.bucket_start >= ${midnight(from)} and r.bucket_start < ${midnight(to)}`;
}

/** The instant at which a day begins. */
export function midnight(day: string): RawBuilder<unknown> {
  return sql`${`${day}T00:00:00Z`}::timestamptz`;
}

/**
 * Name of the entity `e`, whose current name is `n`. `masked`: users are named by their id, as in the masked views
 * (sql/reporting/85_masked.sql).
 */
export function nameOf({ by }: UsageOf, masked: boolean): RawBuilder<unknown> {
  return by === "user" && masked
    ? sql`case when n.name is not null then 'user ' || usage.shown_id(e.external_id) end`
    : sql`n.name`;
}
