import { type RawBuilder, sql } from "kysely";
import type { UnpricedUsage } from "../../domain/bill/unpriced.ts";
import type { Database } from "../db/database.ts";

/** What the estimates of one source leave out. */
export async function unpricedUsage(db: Database, sourceId: number): Promise<UnpricedUsage> {
  const { rows } = await sql<UnpricedUsage>`
    select u.prices, u.days, u.traces, u."firstDay", u."lastDay"
    from (${unpricedBySource()}) u where u.source_id = ${sourceId}
  `.execute(db);
  return rows[0] as UnpricedUsage;
}

/**
 * SELECT of `source_id` and the columns of `UnpricedUsage`, one row a source: the days of `reporting.usage_unpriced_daily`
 * where has_other_price is false. That view reads all history. This reads only records of days for which no price is valid.
 */
export function unpricedBySource(): RawBuilder<unknown> {
  return sql`
    with open as materialized (
      select e.source_id, w.entity_id as workspace_id, '{(,)}'::datemultirange - coalesce(p.days, '{}') as days
      from usage.workspace w join usage.entity e using (entity_id)
      left join (
        select workspace_entity_id, range_agg(days) as days from usage.measured_price
        -- As reporting.usage_unpriced_daily has it.
        where measure in ('traces', 'shortlived') group by 1
      ) p on p.workspace_entity_id = w.entity_id
      where exists (select from usage.price)
    ), cell as materialized (
      select o.source_id, o.days, c.scope_id
      from open o
      join usage.scope c on c.source_id = o.source_id and c.workspace_id = o.workspace_id and c.group_by = 'workspace'
       and c.stride = 'day'
      where not isempty(o.days)
    ), part as materialized (
      select c.source_id, s.series_id, coalesce(lower(part), '-infinity') as start, coalesce(upper(part), 'infinity') as "end"
      from cell c join usage.series s using (scope_id) cross join lateral unnest(c.days) part
    ), unpriced as materialized (
      select p.source_id, r.usage_date, r.traces
      from part p
      -- Offset: by series, each by its key. Postgres expects more days than there are, and would read all records.
      cross join lateral (
        select r.bucket_start as usage_date, r.traces from usage.dated_record r
        where r.series_id = p.series_id and r.bucket_start >= p.start and r.bucket_start < p."end" and r.traces > 0
        offset 0
      ) r
      union all
      select c.source_id, f.usage_date, f.traces
      from cell c join usage.figure_of_hours f on f.day_scope_id = c.scope_id and c.days @> f.usage_date
      where f.traces > 0
    )
    select s.source_id, (select count(*)::integer from usage.price) as prices, count(distinct u.usage_date)::integer as days,
           coalesce(sum(u.traces), 0)::bigint as traces, to_char(min(u.usage_date), 'YYYY-MM-DD') as "firstDay",
           to_char(max(u.usage_date), 'YYYY-MM-DD') as "lastDay"
    from usage.source s left join unpriced u using (source_id)
    group by s.source_id`;
}

/** Days on which a SKU has no price, between two prices of the same scope. */
export interface PriceGap {
  readonly sku: string;
  /** Null: every source. */
  readonly source: string | null;
  readonly workspace: string | null;
  /** ISO days; the end is not included. */
  readonly from: string;
  readonly to: string;
}

/** Gaps that no price of a wider scope fills. */
export async function priceGaps(db: Database): Promise<PriceGap[]> {
  const { rows } = await sql<PriceGap>`
    with scope as (
      select sku_id, source_id, workspace_id, range_agg(daterange(valid_from, valid_to)) as days
      from usage.price group by sku_id, source_id, workspace_id
    )
    select k.name as sku, s.slug as source, e.external_id as workspace, to_char(lower(gap), 'YYYY-MM-DD') as "from",
           to_char(upper(gap), 'YYYY-MM-DD') as "to"
    from scope p
    join usage.sku k using (sku_id)
    left join usage.source s on s.source_id = p.source_id
    left join usage.entity e on e.entity_id = p.workspace_id
    cross join lateral (
      select coalesce(range_agg(days), '{}') as days from scope w
      where w.sku_id = p.sku_id and w.workspace_id is null
        and (w.source_id is null or (w.source_id = p.source_id and p.workspace_id is not null))
        and (p.source_id is not null)
    ) wider
    cross join lateral unnest(datemultirange(range_merge(p.days)) - p.days - wider.days) gap
    order by 1, 2 nulls first, 3 nulls first, 4
  `.execute(db);
  return rows;
}
