import { type RawBuilder, sql } from "kysely";
import { isMonth, type Period } from "../../core/domain/months/month.ts";
import { type Database, queryOne, type Row } from "../../core/store/db/query.ts";
import type { Cost } from "../costs/keep-costs.store.ts";

export interface Kept {
  readonly totals: string;
  readonly costs: readonly Pick<Cost, "currency" | "cost">[];
  readonly findings: string;
}

export interface TotalsToClose extends Kept {
  /** Number of totals by dimension, workspace and id, and their traces. Traces of different dimensions must not be added up. */
  readonly dimensions: readonly (Row<"usage.scope", "groupBy"> & { totals: number; traces: number })[];
  readonly workspaces: readonly {
    readonly workspaceId: string;
    readonly name: string | null;
    readonly traces: number;
  }[];
}

const DIGEST_OF_TOTALS = sql<string>`md5(coalesce(string_agg(series_id || ' ' || traces, ',' order by series_id), ''))`;

export async function totalsToClose(
  db: Database,
  requested: { sourceId: number; period: Period; workspaces: readonly number[] },
): Promise<TotalsToClose> {
  const { sourceId, period, workspaces } = requested;
  const { start, end } = period;
  // Loads keep monthly totals up to date.
  const traces = isMonth(period)
    ? sql`select t.traces from usage.monthly_total t where t.series_id = s.series_id and t.month_start = ${start}::date`
    : sql`select sum(r.traces)::bigint as traces from usage.dated_record r
          where r.series_id = s.series_id and r.bucket_start >= ${start}::date and r.bucket_start < ${end}::date`;
  return queryOne<TotalsToClose>(db)`
    with total as materialized (
      select s.series_id, c.group_by, c.workspace_id, n.traces
      from usage.trace_scope c join usage.series s using (scope_id)
      cross join lateral (${traces}) n
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
               where k.source_id = ${sourceId} and k.month_start = ${start}::date and ${isMonth(period)}
                 and k.workspace_id = any (${workspaces}::integer[]) and (k.measure = 'traces' or k.is_final)
               group by k.currency
             ) x
           ), '[]') as costs,
           (select ${DIGEST_OF_TOTALS} from total) as totals, ${findingsDigest(requested)} as findings
  `;
}

/** Reads the stored totals of a close. Its costs are returned by `keepCosts`. */
export async function keptByClose(
  db: Database,
  close: { closeId: number; period: Period; workspaces: readonly number[] },
): Promise<Omit<Kept, "costs">> {
  const { closeId } = close;
  return queryOne<Omit<Kept, "costs">>(db)`
    select (select ${DIGEST_OF_TOTALS} from usage.closed_total where close_id = ${closeId}) as totals,
           ${findingsDigest(close)} as findings
  `;
}

/** Digest of the differences, of every meter, that a close of the period accepts. `workspaces` are entity ids. */
function findingsDigest(close: { period: Period; workspaces: readonly number[] }): RawBuilder<string> {
  const [start, end] = [close.period.start, close.period.end].map(
    (day) => sql`${day}::timestamp at time zone 'UTC'`,
  );
  return sql<string>`(
    with own as materialized (
      select scope_id from usage.scope
      where workspace_id = any (${close.workspaces}::integer[]) and stride = 'day'
    )
    select md5(coalesce(string_agg(f.finding, ',' order by f.finding collate "C"), ''))
    from (
      select json_build_array(scope_id, compared_with, extract(epoch from period_start), extract(epoch from period_end),
                              external_id, measure, kind, stored_traces, other_traces, export_says)::text as finding
      from usage.difference d join own using (scope_id)
      where d.state = 'platform_disagrees' and period_start < ${end} and period_end > ${start}
    ) f
  )`;
}
