import { type RawBuilder, sql } from "kysely";
import type { ProviderMonth } from "../../domain/bill/provider.ts";
import type { Database } from "../db/database.ts";

/** Sums of a source over one calendar month; null where a day of it is not loaded. */
interface MonthOfBill {
  readonly traces: number | null;
  readonly longlived: number | null;
  readonly nodesExecuted: number | null;
  readonly agentRuns: number | null;
}

/** What a month's bill is made of, over all workspaces. `monthStart`: its first day, ISO. */
export async function monthOfBill(
  db: Database,
  { source, monthStart }: { source: string; monthStart: string },
): Promise<MonthOfBill> {
  const whole = (column: string) =>
    sql`case when bool_and(is_complete) then sum(${sql.ref(column)})::bigint end`;
  const of = sql`source_id = ${source} and month_start = ${monthStart}::date`;
  const { rows } = await sql<MonthOfBill>`
    select (select ${whole("traces")} from reporting_detail.fct_usage_workspace_monthly where ${of}) as traces,
           (select ${whole("traces")} from reporting_detail.fct_usage_workspace_by_tier_monthly
            where ${of} and trace_tier = 'longlived') as longlived,
           d.nodes_executed as "nodesExecuted", d.agent_runs as "agentRuns"
    from (
      select ${whole("nodes_executed")} as nodes_executed, ${whole("agent_runs")} as agent_runs
      from reporting_detail.fct_deployment_usage_workspace_monthly where ${of}
    ) d
  `.execute(db);
  return rows[0] as MonthOfBill;
}

const ISO = 'YYYY-MM-DD"T"HH24:MI:SS"Z"';

interface Asked {
  readonly sourceId: number;
  /** First day, ISO. */
  readonly monthStart: string;
}

/**
 * SELECT of one row: the kept totals of a month that begins on that day (ISO). A total that nothing could be compared with is among
 * the outcomes too. Without totals of any workspace, why there are none.
 */
export function providerMonthIn({ sourceId, monthStart }: Asked): RawBuilder<ProviderMonth> {
  return sql<ProviderMonth>`
    with kept as (
      select * from usage.provider_total where source_id = ${sourceId} and month_start = ${monthStart}::date and meter is not null
    )
    select to_char(max(k.read_at) at time zone 'UTC', ${ISO}) as "readAt",
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
             where c.source_id = ${sourceId} and c.kind = 'traces' and c.stride = 'day' and c.group_by = 'workspace'
               and t.restated_at > (select max(read_at) from kept)
               and t.bucket_start >= ${monthStart}::date::timestamp at time zone 'UTC'
               and t.bucket_start < (${monthStart}::date + interval '1 month') at time zone 'UTC'
           ) as "changedSince"
    from kept k`;
}
