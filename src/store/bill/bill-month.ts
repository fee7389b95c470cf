import { sql } from "kysely";
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
    select (select ${whole("traces")} from reporting.fct_usage_workspace_monthly where ${of}) as traces,
           (select ${whole("traces")} from reporting.fct_usage_workspace_by_tier_monthly
            where ${of} and trace_tier = 'longlived') as longlived,
           d.nodes_executed as "nodesExecuted", d.agent_runs as "agentRuns"
    from (
      select ${whole("nodes_executed")} as nodes_executed, ${whole("agent_runs")} as agent_runs
      from reporting.fct_deployment_usage_workspace_monthly where ${of}
    ) d
  `.execute(db);
  return rows[0] as MonthOfBill;
}
