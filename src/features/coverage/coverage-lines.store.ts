import { type RawBuilder, sql } from "kysely";
import { DAY_MS, floorToGrid } from "../../core/domain/time/stride.ts";
import type { Interval } from "../../core/domain/time/window.ts";
import type { Meter } from "../../core/domain/usage/meter.ts";
import { type Database, query } from "../../core/store/db/query.ts";

export interface CoverageLine {
  readonly source: string;
  readonly meter: Meter;
  readonly groupBy: string;
  readonly stride: string;
  readonly status: string;
  readonly days: number;
  readonly endedDays: number;
  readonly firstDay: string;
  readonly lastDay: string;
}

/** Counts workspace days by status, optionally for each day. Default meter: traces of all tiers. */
export async function coverageLines(
  db: Database,
  given: { source?: string; range?: Interval | undefined; byDay?: boolean; meter?: Meter } = {},
): Promise<CoverageLine[]> {
  const { source, range, byDay = false, meter = "traces" } = given;
  const day = byDay ? sql`p.day` : sql`null::date`;
  const part = byDay
    ? sql`(select day, day as first, day + 1 as after from usage.days_of(x.days) day)`
    : sql`(select lower(d.days) as first, upper(d.days) as after from unnest(x.days) d (days))`;
  return query<CoverageLine>(db)`
    select c.slug as source, c.meter, c.group_by as "groupBy", c.stride, s.status, sum(p.after - p.first)::integer as days,
           sum(greatest(least(p.after, t.today) - p.first, 0))::integer as "endedDays",
           min(p.first)::text as "firstDay", (max(p.after) - 1)::text as "lastDay"
    from usage.coverage_cell c
    cross join (select (now() at time zone 'UTC')::date as today) t
    cross join lateral (
      values ('not_available', c.not_available), ('failed', c.failed), ('missing', c.missing), ('unverified', c.unverified),
             ('provisional', c.provisional), ('empty', c.final - c.traced), ('ok', c.final * c.traced)
    ) s (status, days)
    cross join lateral (select s.days * ${daysWithin(range)} as days offset 0) x
    cross join lateral ${part} p
    where c.meter = ${meter} ${source === undefined ? sql`` : sql`and c.slug = ${source}`}
    group by c.slug, c.meter, c.group_by, c.stride, s.status, ${day}
    order by 1, ${day}, usage.dimension_position(c.group_by),
             array_position(array['day', 'hour'], c.stride),
             array_position(array['not_available', 'failed', 'missing', 'unverified', 'provisional', 'empty', 'ok'], s.status)
  `;
}

export async function otherGapLines(
  db: Database,
  given: { range?: Interval | undefined; byDay?: boolean },
): Promise<CoverageLine[]> {
  const rows = await query<{ meter: Meter; sources: string[] }>(db)`
    select k.meter, array_agg(s.slug) as sources from usage.kept_meter k join usage.source s using (source_id) group by 1 order by 1
  `;
  const lines: CoverageLine[] = [];
  for (const { meter, sources } of rows) {
    const own = await coverageLines(db, { ...given, meter });
    lines.push(...own.filter((line) => sources.includes(line.source) && isGap(line)));
  }
  return lines;
}

export const GAPS: readonly string[] = ["failed", "missing", "unverified"];

export function isGap({ status, endedDays }: CoverageLine): boolean {
  return GAPS.includes(status) && endedDays > 0;
}

function daysWithin(range: Interval | undefined): RawBuilder<unknown> {
  if (range === undefined) return sql`'{(,)}'::datemultirange`;
  const day = (at: number) => new Date(floorToGrid(at, DAY_MS)).toISOString().slice(0, 10);
  return sql`datemultirange(daterange(${day(range.start)}::date, ${day(range.end - 1)}::date, '[]'))`;
}

export interface StrideDays {
  readonly stride: string;
  readonly final: number;
  readonly provisional: number;
  readonly missing: number;
  readonly failed: number;
  readonly unverified: number;
}

export async function daysByStride(db: Database, source: string): Promise<StrideDays[]> {
  const lines = await coverageLines(db, { source });
  const byStride = [...Map.groupBy(lines, ({ stride }) => stride)].sort(([a], [b]) => a.localeCompare(b));
  return byStride.map(([stride, of]) => {
    const count = (...statuses: readonly string[]) =>
      of.reduce((sum, { status, endedDays }) => sum + (statuses.includes(status) ? endedDays : 0), 0);
    return {
      stride,
      final: count("ok", "empty"),
      provisional: count("provisional"),
      missing: count("missing"),
      failed: count("failed"),
      unverified: count("unverified"),
    };
  });
}
