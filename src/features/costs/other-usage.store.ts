import { type RawBuilder, sql } from "kysely";
import type { Interval } from "../../core/domain/time/window.ts";
import { METER, METERS } from "../../core/domain/usage/meter.ts";
import type { Database } from "../../core/store/db/database.ts";
import type { KnownUsage } from "./other-usage.ts";

export type OtherUsage = KnownUsage;

const OTHERS = METERS.filter((meter) => meter !== "traces");

interface Requested {
  readonly sourceId: number;
  readonly range: Interval;
}

export async function otherUsage(db: Database, requested: Requested): Promise<OtherUsage[]> {
  const { rows } = await otherUsageIn(requested).execute(db);
  return inOrder(rows);
}

export function inOrder(rows: readonly OtherUsage[]): OtherUsage[] {
  return OTHERS.flatMap((meter) => rows.filter((row) => row.meter === meter));
}

export function otherUsageIn({ sourceId, range }: Requested): RawBuilder<OtherUsage> {
  const [from, to] = [sql`${new Date(range.start)}::timestamptz`, sql`${new Date(range.end)}::timestamptz`];
  const seconds = sql`extract(epoch from least(t.period_end, ${to}) - greatest(t.period_start, ${from}))`;
  const overlaps = sql`t.scope_id = c.scope_id and t.period_start < ${to} and t.period_end > ${from}`;
  const terms = OTHERS.map((meter) => sql`(${meter}, ${METER[meter].kind}, ${METER[meter].tier})`);
  return sql<OtherUsage>`
    select m.meter,
           case when k.is_known then 'checked' when not w.is_wanted then 'not_wanted'
                -- Of the time before an unknown meter begins it is known that none was counted.
                when a.state in ('not_counted', 'nothing_yet') or k.starts_on >= (${to} at time zone 'UTC')::date then 'not_counted'
                else 'not_known' end as state,
           case when a.state <> 'counted' then a.evidence end as evidence,
           coalesce(l."finalDays", 0) as "finalDays", coalesce(l."reconciledDays", 0) as "reconciledDays",
           coalesce(l.differences, 0) as differences
    from usage.source s
    cross join (values ${sql.join(terms)}) m (meter, kind, tier)
    left join usage.source_meter a on a.source_id = s.source_id and a.meter = m.meter
    left join usage.kept_meter k on k.source_id = s.source_id and k.meter = m.meter
    cross join lateral (select m.meter = any (s.wanted_meters) as is_wanted) w
    left join lateral (
      select true as is_loaded, sum(f.days)::integer as "finalDays", sum(r.days)::integer as "reconciledDays",
             sum(d.differences)::integer as differences
      from usage.scope c
      cross join lateral (
        select count(*) as parts, sum(${seconds}) filter (where t.final) / 86400 as days from usage.coverage t where ${overlaps}
      ) f
      cross join lateral (select sum(${seconds}) / 86400 as days from usage.reconciled t where ${overlaps}) r
      cross join lateral (
        select count(*) as differences from usage.difference t
        where ${overlaps} and t.state in ('open', 'platform_disagrees') and t.compared_with <> 'provider_total'
      ) d
      where c.source_id = s.source_id and c.stride = 'day' and c.kind = m.kind and c.trace_tier = m.tier
        and f.parts > 0
      having count(*) > 0
    ) l on true
    where s.source_id = ${sourceId} and (w.is_wanted or l.is_loaded)`;
}
