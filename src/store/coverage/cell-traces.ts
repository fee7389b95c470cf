import { type RawBuilder, sql } from "kysely";
import type { Interval } from "../../domain/time/window.ts";
import type { Database } from "../db/database.ts";

/** A part of a scope's time: by `month` a calendar month, by `day` a UTC day, by `hour` any whole hours. */
export interface ScopePart extends Interval {
  readonly scopeId: number;
  readonly by: "month" | "day" | "hour";
}

/**
 * Which of these parts have traces, by their place in the list: it tells `ok` from `empty`. Each part looks at one series after
 * the other and stops at the first with traces, as the view does.
 */
export async function partsWithTraces(
  db: Database,
  parts: readonly ScopePart[],
): Promise<ReadonlySet<number>> {
  if (parts.length === 0) return new Set();
  const { rows } = await sql<{ n: number }>`
    select p.n::integer - 1 as n
    from unnest(
      ${parts.map(({ scopeId }) => scopeId)}::integer[], ${parts.map(({ by }) => by)}::text[],
      ${parts.map(({ start }) => new Date(start).toISOString())}::timestamptz[],
      ${parts.map(({ end }) => new Date(end).toISOString())}::timestamptz[]
    ) with ordinality p (scope_id, by, start, "end", n)
    where exists (
      select from usage.series s where s.scope_id = p.scope_id
        and case p.by when 'month' then ${HAS_TRACES.month} when 'day' then ${HAS_TRACES.day} else ${HAS_TRACES.hour} end
    )
  `.execute(db);
  return new Set(rows.map(({ n }) => n));
}

/** Scalar, so that no plan can read the records of all series for each part, whatever it expects. */
const HAS_TRACES: Readonly<Record<ScopePart["by"], RawBuilder<boolean>>> = {
  month: sql`(
    select t.traces from usage.monthly_total t
    where t.series_id = s.series_id and t.month_start = (p.start at time zone 'UTC')::date
  ) > 0`,
  day: sql`(
    select r.traces from usage.dated_record r
    where r.series_id = s.series_id and r.bucket_start = (p.start at time zone 'UTC')::date
  ) > 0`,
  hour: sql`(
    select true from usage.hourly_record r
    where r.series_id = s.series_id and r.traces > 0 and r.bucket_start >= p.start and r.bucket_start < p."end"
    limit 1
  )`,
};
