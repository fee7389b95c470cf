import type { GroupBy } from "../../core/domain/usage/record.ts";
import { isIfGiven, iso } from "../../core/store/db/expressions.ts";
import { type Database, query } from "../../core/store/db/query.ts";
import type { CurrencyCost } from "../costs/bill.ts";

/** Days of one workspace that follow each other and lack a daily figure of traces. */
export interface Gap {
  readonly source: string;
  readonly workspaceId: string;
  readonly workspaceName: string | null;
  /** ISO days, end exclusive. */
  readonly from: string;
  readonly to: string;
  readonly groupings: readonly GroupBy[];
  /** The newest failure in the gap. Null: nothing was requested yet, or its response said nothing of the workspace. */
  readonly failure: { readonly code: string; readonly message: string; readonly retryAt: string } | null;
  readonly isRequested: boolean;
  /**
   * Charges of these days. If the workspace's own figure of some is missing: those days at the average of what is loaded of the 28
   * days before the gap.
   */
  readonly costs: readonly CurrencyCost[];
}

export async function listGaps(db: Database, source?: string): Promise<Gap[]> {
  return query<Gap>(db)`
    with open as materialized (
      select c.source_id, c.workspace_entity_id as workspace_id, c.group_by, c.day_scope_id as scope_id,
             datemultirange(daterange(s.data_start, greatest(s.data_start, (now() at time zone 'UTC')::date)))
               * (e.days - (c.loaded - c.failed - c.unverified)) as days, e.days as required
      from usage.trace_cell c
      join usage.required_workspace e on e.workspace_id = c.workspace_entity_id
      join usage.source s on s.source_id = c.source_id
      where ${isIfGiven("s.slug", source)}
    ), gap as materialized (
      select x.source_id, x.workspace_id, g.days, lower(g.days) as starts, upper(g.days) as ends,
             lower(g.days)::timestamp at time zone 'UTC' as starts_at, upper(g.days)::timestamp at time zone 'UTC' as ends_at
      from (select source_id, workspace_id, range_agg(days) as days from open group by 1, 2) x
      cross join lateral unnest(x.days) g (days)
    )
    select s.slug as source, w.dimension_id as "workspaceId", w.dimension_name as "workspaceName", g.starts::text as "from",
           g.ends::text as "to", o.groupings, f.failure, t.is_requested as "isRequested", c.costs
    from gap g
    join usage.source s using (source_id)
    join usage.labelled_entity w on w.entity_id = g.workspace_id
    cross join lateral (
      select array_agg(o.group_by order by usage.dimension_position(o.group_by)) as groupings, array_agg(o.scope_id) as scopes
      from open o where o.workspace_id = g.workspace_id and o.days && g.days
    ) o
    left join lateral (
      select json_build_object('code', f.code, 'message', f.message, 'retryAt', ${iso("f.retry_at")}) as failure
      from usage.failure f
      where f.scope_id = any (o.scopes) and f.period_start < g.ends_at and f.period_end > g.starts_at
      order by f.failed_at desc, f.scope_id limit 1
    ) f on true
    cross join lateral (
      select exists (
        select from usage.fetch_task t left join usage.backfill b using (backfill_id)
        where t.state in ('waiting', 'queued') and t.scope_ids && o.scopes and t.period_start < g.ends_at
          and t.period_end > g.starts_at and b.state is distinct from 'paused'
      ) as is_requested
    ) t
    cross join lateral (
      select coalesce(json_agg(json_build_object('currency', d.currency, 'cost', d.cost::text) order by d.currency), '[]') as costs
      from (
        select d.currency, case when p.missing > 0 then sum(d.cost) / p.loaded_before * p.missing else sum(d.cost) end::numeric(38, 10) as cost
        from (
          select usage.count_days(w.days * datemultirange(g.days)) as missing,
                 usage.count_days((w.required - w.days) * datemultirange(daterange(greatest(s.data_start, g.starts - 28), g.starts))) as loaded_before
          from open w where w.workspace_id = g.workspace_id and w.group_by = 'workspace'
        ) p
        join usage.charge_day d
          on d.workspace_id = g.workspace_id and d.measure in ('traces', 'longlived', 'shortlived')
         and d.usage_date >= case when p.missing > 0 then greatest(s.data_start, g.starts - 28) else g.starts end
         and d.usage_date < case when p.missing > 0 then g.starts else g.ends end
        where p.missing = 0 or p.loaded_before > 0
        group by d.currency, p.missing, p.loaded_before
      ) d where d.cost > 0
    ) c
    order by g.starts desc, w.dimension_name, w.dimension_id
  `;
}
