import { type RawBuilder, sql } from "kysely";
import type { ProviderMonth } from "../../core/domain/months/provider.ts";
import { iso } from "../../core/store/db/expressions.ts";

interface Requested {
  readonly sourceId: number;
  readonly monthStart: string;
}

/**
 * One row: the stored provider totals of a month. Outcomes include totals that could not be compared. Without totals, `refusal`
 * may give the reason.
 */
export function providerMonthIn({ sourceId, monthStart }: Requested): RawBuilder<ProviderMonth> {
  return sql<ProviderMonth>`
    with kept as (
      select * from usage.provider_total where source_id = ${sourceId} and month_start = ${monthStart}::date and meter is not null
    )
    select ${iso("max(k.read_at)")} as "readAt",
           (select b.refusal from usage.bill_part b where b.source_id = ${sourceId} and b.part = 'provider_totals') as refusal,
           coalesce((
             select json_agg(x order by x.meter desc, x.workspaces desc, x.outcome) from (
               select meter, outcome, count(*) filter (where workspace <> '')::integer as workspaces,
                      case when outcome = 'unknown_workspace' then sum(value)::float8 end as held
               from kept
               where workspace <> '' or outcome not in ('sum_of_workspaces', 'not_the_sum')
               group by 1, 2
             ) x
           ), '[]') as outcomes,
           (
             select count(distinct c.workspace_id)::integer
             from usage.restatement t join usage.series s using (series_id) join usage.scope c using (scope_id)
             where c.source_id = ${sourceId} and c.kind in ('traces', 'langsmith_deployments') and c.stride = 'day'
               and c.group_by = 'workspace'
               and t.restated_at > (select max(read_at) from kept)
               and t.bucket_start >= ${monthStart}::date::timestamp at time zone 'UTC'
               and t.bucket_start < (${monthStart}::date + interval '1 month') at time zone 'UTC'
           ) as "changedSince"
    from kept k`;
}
