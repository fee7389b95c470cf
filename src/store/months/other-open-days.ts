import { type RawBuilder, sql } from "kysely";
import type { OpenReason } from "../../domain/months/check-list.ts";
import type { Interval } from "../../domain/time/window.ts";
import type { Meter } from "../../domain/usage/meter.ts";
import type { GroupBy } from "../../domain/usage/record.ts";

export interface DayFound {
  /** UTC midnight, epoch milliseconds. */
  readonly day: number;
  readonly meter: Meter;
  readonly groupBy: GroupBy;
  /** The platform's id. */
  readonly workspaceId: string;
  readonly reason: OpenReason;
}

/**
 * SELECT of every day of other usage than traces of all tiers, of these workspaces (entity ids), that is missing, not final or
 * contradicted; once for each reason (`usage.other_open_days`).
 */
export function otherOpenDaysIn({
  workspaces,
  range,
}: {
  workspaces: readonly number[];
  range: Interval;
}): RawBuilder<DayFound> {
  const [from, to] = [new Date(range.start), new Date(range.end)].map((end) =>
    end.toISOString().slice(0, 10),
  );
  return sql<DayFound>`
    select (extract(epoch from day::timestamp at time zone 'UTC') * 1000)::bigint as day, o.meter, o.group_by as "groupBy",
           e.external_id as "workspaceId",
           case when r.reason = 'missing' and n.source_id is not null then 'not_available' else r.reason end as reason
    from usage.other_open_days o
    join usage.entity e on e.entity_id = o.workspace_id
    left join usage.source_fact n on n.source_id = o.source_id and n.fact = 'no_day'
    cross join lateral (
      values ('missing', o.missing), ('failed', o.failed), ('unverified', o.unverified), ('provisional', o.provisional),
             ('open', o.open), ('platform_disagrees', o.contradicted), ('tiers_differ', o.tiers), ('total_differs', o.totals)
    ) r (reason, days)
    cross join lateral unnest(r.days * datemultirange(daterange(${from}::date, ${to}::date))) u (days)
    cross join lateral usage.days_between(lower(u.days), upper(u.days) - 1) day
    where o.workspace_id = any (${[...workspaces]}::integer[])`;
}
