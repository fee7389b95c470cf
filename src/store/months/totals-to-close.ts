import { type RawBuilder, sql } from "kysely";
import type { GroupBy } from "../../domain/usage/record.ts";
import { type Database, queryOne } from "../db/query.ts";
import type { Cost } from "./keep-costs.ts";

export interface Kept {
  readonly totals: string;
  readonly costs: readonly Pick<Cost, "currency" | "cost">[];
  readonly findings: string;
}

export interface TotalsToClose extends Kept {
  /** Number of totals by dimension, workspace and id, and their traces; dimensions are not to be added. */
  readonly dimensions: readonly {
    readonly groupBy: GroupBy;
    readonly totals: number;
    readonly traces: number;
  }[];
  readonly workspaces: readonly {
    readonly workspaceId: string;
    readonly name: string | null;
    readonly traces: number;
  }[];
}

/** SQL: of rows with `series_id` and `traces`. */
const DIGEST_OF_TOTALS = sql<string>`md5(coalesce(string_agg(series_id || ' ' || traces, ',' order by series_id), ''))`;

export async function totalsToClose(
  db: Database,
  asked: { sourceId: number; monthStart: string; workspaces: readonly number[] },
): Promise<TotalsToClose> {
  const { sourceId, monthStart, workspaces } = asked;
  return queryOne<TotalsToClose>(db)`
    with total as materialized (
      select s.series_id, c.group_by, c.workspace_id, n.traces
      from usage.trace_scope c join usage.series s using (scope_id)
      join usage.monthly_total n on n.series_id = s.series_id and n.month_start = ${monthStart}::date
      where c.source_id = ${sourceId} and c.stride = 'day' and c.workspace_id = any (${workspaces}::integer[])
        and n.traces > 0
    )
    select coalesce((
             select json_agg(x order by usage.dimension_position(x."groupBy")) from (
               select group_by as "groupBy", count(*)::integer as totals, sum(traces)::bigint as traces
               from total group by group_by
             ) x
           ), '[]') as dimensions,
           coalesce((
             select json_agg(x order by x.traces desc, x."workspaceId") from (
               select e.dimension_id as "workspaceId", e.dimension_name as name, coalesce(sum(t.traces), 0)::bigint as traces
               from usage.labelled_entity e left join total t on t.workspace_id = e.entity_id and t.group_by = 'workspace'
               where e.entity_id = any (${workspaces}::integer[])
               group by 1, 2
             ) x
           ), '[]') as workspaces,
           coalesce((
             select json_agg(x order by x.currency) from (
               select k.currency, trim_scale(sum(k.cost))::text as cost from usage.charge k
               where k.source_id = ${sourceId} and k.month_start = ${monthStart}::date and not k.is_closed
                 and k.workspace_id = any (${workspaces}::integer[]) and (k.measure = 'traces' or k.is_final)
               group by k.currency
             ) x
           ), '[]') as costs,
           (select ${DIGEST_OF_TOTALS} from total) as totals, ${findingsDigest(asked)} as findings
  `;
}

/** A close that has stored its totals, but not its costs, which `keepCosts` returns. */
export async function keptByClose(
  db: Database,
  close: { closeId: number; monthStart: string; workspaces: readonly number[] },
): Promise<Omit<Kept, "costs">> {
  const { closeId } = close;
  return queryOne<Omit<Kept, "costs">>(db)`
    select (select ${DIGEST_OF_TOTALS} from usage.closed_total where close_id = ${closeId}) as totals,
           ${findingsDigest(close)} as findings
  `;
}

/** Digest of the findings, of every meter, that a close of the month accepts. `workspaces`: entity ids. */
function findingsDigest(close: { monthStart: string; workspaces: readonly number[] }): RawBuilder<string> {
  const start = sql`${close.monthStart}::timestamp at time zone 'UTC'`;
  const end = sql`(${close.monthStart}::timestamp + interval '1 month') at time zone 'UTC'`;
  return sql<string>`(
    with own as materialized (
      select scope_id from usage.scope
      where workspace_id = any (${close.workspaces}::integer[]) and stride = 'day'
    )
    select md5(coalesce(string_agg(f.finding, ',' order by f.finding collate "C"), ''))
    from (
      select json_build_array('export', scope_id, extract(epoch from bucket_start), external_id, measure, kind, stored_traces,
                              export_traces, export_says)::text as finding
      from usage.reconciliation_difference d join own using (scope_id)
      where d.state = 'platform_disagrees' and bucket_start >= ${start} and bucket_start < ${end}
      union all
      select json_build_array('total', scope_id, extract(epoch from period_start), extract(epoch from period_end), external_id,
                              measure, kind, stored_traces, control_traces)::text
      from usage.control_difference d join own using (scope_id)
      where d.state = 'platform_disagrees' and period_start < ${end} and period_end > ${start}
    ) f
  )`;
}
