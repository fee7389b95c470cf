import { sql } from "kysely";
import type { UnpricedUsage } from "../../domain/unpriced.ts";
import type { Database } from "../db/database.ts";

export async function unpricedUsage(db: Database, sourceId: number): Promise<UnpricedUsage> {
  const { rows } = await sql<UnpricedUsage>`
    select (select count(*)::integer from usage.price) as prices, count(distinct v.usage_date)::integer as days,
           coalesce(sum(v.traces), 0)::bigint as traces, to_char(min(v.usage_date), 'YYYY-MM-DD') as "firstDay",
           to_char(max(v.usage_date), 'YYYY-MM-DD') as "lastDay"
    from usage.source s
    left join reporting.usage_unpriced_daily v on v.source_id = s.slug and not v.has_other_price
    where s.source_id = ${sourceId}
  `.execute(db);
  return rows[0] as UnpricedUsage;
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
