import { type RawBuilder, sql } from "kysely";
import type { RestatementCount } from "../../core/domain/proof/restatement.ts";
import { labelOf } from "../../core/store/catalog/entity-names.ts";
import { isIfGiven } from "../../core/store/db/expressions.ts";
import { type Database, query, queryOne, type Row } from "../../core/store/db/query.ts";
import { restatementCounts } from "../../core/store/proof/restatement-counts.ts";

interface Adjustment extends Row<"usage.scope", "groupBy"> {
  /** The platform's id. `(none)` if usage has no workspace. */
  readonly workspaceId: string;
  readonly workspaceName: string | null;
  readonly dimensionId: string;
  readonly dimensionName: string | null;
  readonly closedTraces: number;
  readonly currentTraces: number;
}

export interface Adjustments {
  readonly totals: number;
  readonly netTraces: number;
  /** Restatements since the close of usage of which a close keeps no totals. */
  readonly others: readonly RestatementCount[];
  readonly largest: readonly Adjustment[];
}

/**
 * Series of closed periods whose total changed, as in `reporting_detail.fct_close` (adjustment_traces <> 0), but read from the
 * monthly totals. Columns: close_id, group_by, workspace_id, entity_id, closed, current.
 */
function adjustedSeries(closes: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
    select m.close_id, c.group_by, c.workspace_id, s.entity_id, coalesce(t.traces, 0) as closed, n.traces as current
    from usage.close m
    join usage.trace_scope c on c.source_id = m.source_id and c.stride = 'day'
    join usage.series s using (scope_id)
    left join usage.closed_total t on t.close_id = m.close_id and t.series_id = s.series_id
    cross join lateral (
      select coalesce(case when m.month_start is not null then (
        select n.traces from usage.monthly_total n where n.series_id = s.series_id and n.month_start = m.month_start
      ) else (
        select sum(r.traces)::bigint from usage.dated_record r
        where r.series_id = s.series_id and r.bucket_start >= m.period_start and r.bucket_start < m.period_end
      ) end, 0) as traces
    ) n
    where m.close_id in (${closes}) and coalesce(t.traces, 0) <> n.traces
      and not exists (
        select from usage.closed_workspace x
        where x.close_id = m.close_id and x.workspace_id = c.workspace_id and x.is_left_out
      )`;
}

/** Restatements since the close `m`, without workspaces that it left out. */
const OTHERS_SINCE =
  restatementCounts(sql`c.source_id = m.source_id and (c.kind <> 'traces' or c.trace_tier <> 'all')
  and t.restated_at > m.closed_at and t.bucket_start >= m.period_start::timestamp at time zone 'UTC'
  and t.bucket_start < m.period_end::timestamp at time zone 'UTC' and not exists (
    select from usage.closed_workspace w
    where w.close_id = m.close_id and w.workspace_id = c.workspace_id and w.is_left_out
  )`);

export async function adjustmentsOf(
  db: Database,
  { closeId, most, masked }: { closeId: number; most: number; masked: boolean },
): Promise<Adjustments> {
  return queryOne<Adjustments>(db)`
    with adjusted as materialized (${adjustedSeries(sql`${closeId}::integer`)})
    select count(*)::integer as totals,
           coalesce(sum(current - closed) filter (where group_by = 'workspace'), 0)::bigint as "netTraces",
           (select ${OTHERS_SINCE} from usage.close m where m.close_id = ${closeId}) as others,
           coalesce((
             select json_agg(x) from (
               select a.group_by as "groupBy", w.dimension_id as "workspaceId", w.dimension_name as "workspaceName",
                      e.dimension_id as "dimensionId",
                      ${labelOf(masked)} as "dimensionName",
                      a.closed as "closedTraces", a.current as "currentTraces"
               from adjusted a
               join usage.labelled_entity w on w.entity_id = a.workspace_id
               join usage.labelled_entity e on e.entity_id = a.entity_id
               order by usage.dimension_position(a.group_by), abs(a.current - a.closed) desc, a.workspace_id, a.entity_id
               limit ${most}
             ) x
           ), '[]') as largest
    from adjusted
  `;
}

export interface Changed extends Pick<Adjustments, "totals" | "netTraces" | "others"> {
  /** Changes of cost by currency, without zeros; exact decimals. */
  readonly costs: readonly { readonly currency: string; readonly more: string }[];
}

export async function countAdjusted(
  db: Database,
  closeIds: readonly number[],
): Promise<ReadonlyMap<number, Changed>> {
  if (closeIds.length === 0) return new Map();
  const ids = sql`select unnest(${closeIds}::integer[])`;
  const rows = await query<{ closeId: number } & Changed>(db)`
    with adjusted as (
      select close_id, count(*)::integer as totals,
             coalesce(sum(current - closed) filter (where group_by = 'workspace'), 0)::bigint as net_traces
      from (${adjustedSeries(ids)}) a group by close_id
    ),
    cost as (
      select close_id, json_agg(json_build_object('currency', currency, 'more', more) order by currency) as costs
      from (
        select m.close_id, c.currency, trim_scale(sum(c.adjustment_cost))::text as more
        from usage.close m
        join usage.source s using (source_id)
        join reporting_detail.fct_close_cost c on c.source_id = s.slug and c.period_start = m.month_start
        where m.close_id in (${ids}) and m.costs_closed_at is not null
        group by m.close_id, c.currency having sum(c.adjustment_cost) <> 0
      ) c group by close_id
    )
    select m.close_id as "closeId", coalesce(totals, 0) as totals, coalesce(net_traces, 0) as "netTraces", coalesce(costs, '[]') as costs,
           ${OTHERS_SINCE} as others
    from usage.close m left join adjusted using (close_id) left join cost using (close_id)
    where m.close_id in (${ids})
  `;
  return new Map(rows.map(({ closeId, ...counts }) => [closeId, counts]));
}

export interface ChangedMonth {
  readonly month: string;
  readonly closedTraces: number;
  readonly netTraces: number;
  readonly hasCosts: boolean;
}

/** Closed months with a day in the range. `workspace`: entity id; default: all. */
export async function changedMonths(
  db: Database,
  {
    sourceId,
    from,
    to,
    workspace,
  }: { sourceId: number; from: string; to: string; workspace?: number | undefined },
): Promise<ChangedMonth[]> {
  const isRequested = isIfGiven("workspace_id", workspace);
  const requested = sql`
    select close_id from usage.close
    where source_id = ${sourceId} and month_start < ${to}::date and period_end > ${from}::date`;
  return query<ChangedMonth>(db)`
    select to_char(m.month_start, 'YYYY-MM') as month, a.net::bigint as "netTraces",
           m.costs_closed_at is not null as "hasCosts", (
             select coalesce(sum(t.traces), 0)::bigint
             from usage.closed_total t join usage.series s using (series_id) join usage.trace_scope c using (scope_id)
             where t.close_id = m.close_id and c.group_by = 'workspace' and ${isRequested}
           ) as "closedTraces"
    from (
      select close_id, sum(current - closed) as net from (${adjustedSeries(requested)}) x where group_by = 'workspace' and ${isRequested} group by close_id
    ) a
    join usage.close m using (close_id)
    where a.net <> 0
    order by 1
  `;
}
