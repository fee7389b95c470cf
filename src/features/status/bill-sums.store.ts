import { type Database, query } from "../../core/store/db/query.ts";

interface BillSum {
  /** First day of the month. */
  readonly month: string;
  /** The currency with the largest amount first. Null: the month has no cost. */
  readonly currency: string | null;
  /** An exact decimal. */
  readonly cost: string | null;
  /** The sources that have closed the month. */
  readonly closedBy: readonly number[];
}

export async function billSums(
  db: Database,
  { sourceIds, months }: { sourceIds: readonly number[]; months: readonly string[] },
): Promise<BillSum[]> {
  return query<BillSum>(db)`
    select m.month::text as month, b.currency, b.cost::text as cost,
           array(select c.source_id::integer from usage.close c
                 where c.month_start = m.month and c.source_id = any (${[...sourceIds]}::integer[])) as "closedBy"
    from unnest(${[...months]}::date[]) m (month)
    left join lateral (
      select b.currency, sum(b.estimated_cost) as cost from reporting.usage_bill_monthly b
      where b.month_start = m.month
        and b.source_id in (select slug from usage.source where source_id = any (${[...sourceIds]}::integer[]))
        and b.currency is not null
      group by 1
    ) b on true
    order by m.month desc, b.cost desc nulls last
  `;
}
