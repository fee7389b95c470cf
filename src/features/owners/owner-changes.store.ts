import { type RawBuilder, sql } from "kysely";
import { type Database, query, queryOne } from "../../core/store/db/query.ts";
import { type DividingDimension, NO_COST_CENTER, UNALLOCATED } from "./owner.ts";

export interface Division {
  readonly divideBy: DividingDimension;
  readonly shares: readonly {
    readonly workspace: number;
    /** 0 is the rest of the workspace. */
    readonly entity: number;
    readonly days: string;
    readonly owner: string;
    readonly costCenter: string | null;
    readonly share: string;
  }[];
}

export async function division(db: Database): Promise<Division> {
  return queryOne<Division>(db)`
    select d.dimension as "divideBy", (
      select coalesce(json_agg(json_build_object(
        'workspace', o.workspace_entity_id, 'entity', o.entity_id, 'days', o.days::text, 'owner', o.owner, 'costCenter', o.cost_center,
        'share', o.share::text
      )), '[]')
      from usage.owned_days o
    ) as shares
    from usage.owned_dimension d
  `;
}

export interface OwnerChange {
  readonly source: string;
  readonly month: string;
  readonly owner: string;
  readonly costCenter: string;
  /** Null: traces. */
  readonly currency: string | null;
  readonly before: string;
  readonly after: string;
  readonly change: string;
  /** True if the month is closed: a report that was sent has changed. */
  readonly isClosed: boolean;
}

/**
 * Months and owners whose amounts differ between two divisions. Usage is read once and summed before it gets owners: by id,
 * month, and span of days in which neither division changes.
 */
export async function ownerChanges(
  db: Database,
  { before, after }: { before: Division; after: Division },
): Promise<OwnerChange[]> {
  const sharesOf = ({ shares }: Division) => sql`
    jsonb_to_recordset(${JSON.stringify(shares)}::jsonb)
      s (workspace integer, entity integer, days datemultirange, owner text, "costCenter" text, share numeric)`;
  const dimensions = [...new Set([before.divideBy, after.divideBy])].map((one) => sql.lit(one));
  // Deployments and sandboxes always have an id, whichever dimension divides traces.
  const isDividedBy = (dimension: RawBuilder<unknown>) =>
    sql`group_by = case when meter in ('deployments', 'sandboxes') then 'project' else ${dimension} end`;
  const span = sql`usage.month_of(usage_date), width_bucket(usage_date, (select days from edge))`;
  return query<OwnerChange>(db)`
    with owned as materialized (
      select false as is_after, s.* from ${sharesOf(before)} union all select true, s.* from ${sharesOf(after)}
    ),
    edge as materialized (
      select coalesce(array_agg(distinct day order by day), '{}') as days
      from owned cross join unnest(days) span cross join lateral (values (lower(span)), (upper(span))) e (day)
      where day is not null
    ),
    summed as materialized (
      select slug, group_by, null as meter, workspace_entity_id, entity_id, null as currency, min(usage_date) as day, sum(traces) as amount
      from usage.divided_traces
      where group_by in (${sql.join(dimensions)})
      group by slug, group_by, workspace_entity_id, entity_id, ${span}
      union all
      select slug, group_by, meter, workspace_entity_id, entity_id, currency, min(usage_date), sum(cost)
      from usage.divided_cost
      where (${sql.join(dimensions.map(isDividedBy), sql` or `)}) and exists (select from usage.priced_meter)
      group by slug, group_by, meter, workspace_entity_id, entity_id, currency, ${span}
    ),
    side (is_after, divides) as (values (false, ${before.divideBy}), (true, ${after.divideBy})),
    part as (select * from summed join side on ${isDividedBy(sql`divides`)} where amount is not null),
    change as (
      select slug, usage.month_of(day) as month, coalesce(owner, ${UNALLOCATED}) as owner, coalesce("costCenter", ${NO_COST_CENTER}) as center,
             currency, coalesce(sum(amount * coalesce(share, 1)) filter (where not p.is_after), 0) as before,
             coalesce(sum(amount * coalesce(share, 1)) filter (where p.is_after), 0) as after
      from part p
      left join owned o on o.is_after = p.is_after and o.workspace = workspace_entity_id and o.entity = entity_id and o.days @> day
      group by 1, 2, 3, 4, 5
    )
    select slug as source, to_char(month, 'YYYY-MM') as month, owner, center as "costCenter", currency, trim_scale(before)::text as before,
           trim_scale(after)::text as after, trim_scale(after - before)::text as change,
           exists (
             select from usage.close c join usage.source s using (source_id) where s.slug = change.slug and c.month_start = change.month
           ) as "isClosed"
    from change
    where before <> after
    order by 1, 2, currency is not null, currency, abs(after - before) desc, owner, center
  `;
}
