import { type RawBuilder, sql } from "kysely";
import { type Days, joined } from "../../core/domain/time/days.ts";
import type { GroupBy } from "../../core/domain/usage/record.ts";
import { labelOf } from "../../core/store/catalog/entity-names.ts";
import { isIfGiven } from "../../core/store/db/expressions.ts";
import { type Database, query, queryValues, type Row } from "../../core/store/db/query.ts";
import { contains, monthOf, type UsageCells } from "../../core/store/figures/records.ts";
import type { Listing } from "../../core/store/figures/sums.ts";
import { UNALLOCATED } from "../owners/owner.ts";
import type { UnpricedDay } from "./price.ts";

export interface ViewLine {
  /**
   * `none`: without an id. `unloaded`: days that are not loaded by this dimension. `adjustment`: a closed month's closed amount
   * less its other lines. `rest`: ids after the first ones. `total`: all owners. `before`: all ids in a bucket of the earlier
   * range.
   */
  readonly kind: "id" | "none" | "unloaded" | "adjustment" | "rest" | "total" | "before";
  /** For an owner: a JSON array of the owner and the cost centre. */
  readonly id: string | null;
  readonly name: string | null;
  readonly ids: number;
  /** First day of the bucket. Null: the whole range. */
  readonly bucket: string | null;
  /** Exact decimal, because an estimate is not rounded. */
  readonly amount: string;
  /** Amount of the earlier range; 0 for a bucket. */
  readonly amountBefore: string;
}

export async function currenciesOf(db: Database, sourceId: number): Promise<string[]> {
  return queryValues<Row<"usage.price">["currency"]>(db)`
    select currency from usage.price where source_id is null or source_id = ${sourceId}
    union select c.currency from usage.closed_charge c join usage.close m using (close_id) where m.source_id = ${sourceId}
    order by 1
  `;
}

interface ViewRange extends Days {
  readonly currency: string | undefined;
}

interface ViewPer {
  readonly per: "day" | "month";
}

/**
 * Costs of ids in one currency, or amounts of owners, for the range, its buckets and an earlier range. The largest come first.
 * Costs include all priced usage. The lines add up to their view, `fct_cost_by_id_daily` or `fct_usage_owner_daily`, and so to
 * the workspaces.
 */
export async function viewLines(
  db: Database,
  of: Omit<UsageCells, "by"> & { readonly by: GroupBy | "owner" },
  { per, before, top, find, masked, sort, ...range }: ViewRange & ViewPer & Listing,
): Promise<ViewLine[]> {
  const { view, id } = viewOf(of.by, range.currency);
  const none = of.by === "owner" ? sql`owner = ${UNALLOCATED}` : sql`${id} = '(none)'`;
  const amount = range.currency === undefined ? sql`traces` : sql`estimated_cost`;
  const isNow = sql`usage_date >= ${range.from}::date`;
  const read = joined([before, range]).map(
    (days) => sql`
      select case when ${id} is null then 'unloaded' when ${none} then 'none'
                  when ${id} = '(adjustment)' then 'adjustment' else 'id' end as kind,
             ${id} as id, ${isNow} as is_now, ${bucketOf(per)} as bucket, ${amount} as amount
      from ${view}
      where ${isOf(of, { ...days, currency: range.currency })} ${range.currency === undefined ? sql`and traces is not null` : sql``}`,
  );
  const isFound =
    of.by === "owner"
      ? sql`exists (select from jsonb_array_elements_text(id::jsonb) x (part) where ${contains(sql`x.part`, find ?? "")})`
      : sql`id in (select id from named where ${contains(sql`id`, find ?? "")} or ${contains(sql`name`, find ?? "")})`;
  return query<ViewLine>(db)`
    with part as materialized (${sql.join(read, sql` union all `)}),
    named as (
      select dimension_id as id, ${labelOf(masked)} as name
      from usage.labelled_entity e where source_id = ${of.sourceId} and dimension = ${of.by}
    ),
    placed as materialized (
      select id, row_number() over (order by first desc, id collate "C") as place
      from (
        select id, ${sort.endsWith("_up") ? sql`-` : sql``}sum(case when is_now then amount ${sort.startsWith("growth") ? sql`else -amount` : sql``} end) as first
        from part where kind = 'id' group by id having bool_or(is_now)
      ) i
      where ${find === undefined ? sql`true` : isFound}
    ),
    line as (
      select case when p.kind = 'id' and coalesce(x.place, ${top} + 1) > ${top} then 'rest' else p.kind end as kind,
             case when x.place <= ${top} then x.place end as place, case when p.kind = 'id' and p.is_now then p.id end as any_id,
             p.id, p.is_now, p.bucket, p.amount
      from part p left join placed x on x.id = p.id and p.kind = 'id'
    ),
    folded as (
      select kind, place, case when place is not null then min(id) end as id, count(distinct any_id)::integer as ids, null::date as bucket,
             coalesce(sum(amount) filter (where is_now), 0) as amount, coalesce(sum(amount) filter (where not is_now), 0) as before
      from line group by kind, place
      union all
      select kind, place, case when place is not null then min(id) end, 1, bucket, sum(amount), 0 from line where is_now group by kind, place, bucket
      union all
      select 'before', null, null, 0, bucket, sum(amount), 0 from line where not is_now group by bucket
      ${of.by === "owner" ? OWNERS_TOTAL : sql``}
    )
    select f.kind, f.id, n.name, f.ids, to_char(f.bucket, 'YYYY-MM-DD') as bucket, trim_scale(f.amount)::text as amount,
           trim_scale(f.before)::text as "amountBefore"
    from folded f
    left join (select id, name from named where id in (select id from placed where place <= ${top})) n using (id)
    order by f.bucket nulls first, array_position('{id,none,unloaded,adjustment,rest,total,before}', f.kind), f.place
  `;
}

function viewOf(by: GroupBy | "owner", currency: string | undefined) {
  if (by === "owner") {
    const view = currency === undefined ? "fct_usage_owner_daily" : "fct_cost_owner_daily";
    return { view: sql.id("reporting", view), id: sql`jsonb_build_array(owner, cost_center)::text` };
  }
  if (by === "workspace") return { view: sql`reporting.fct_cost_workspace_daily`, id: sql`workspace_id` };
  const view = sql`(select * from reporting_detail.fct_cost_by_id_daily where group_by = ${by}) costs`;
  return { view, id: sql`dimension_id` };
}

/** An owner's share may have more digits than an amount keeps, so the total is not the sum of the owners' amounts. */
const OWNERS_TOTAL = sql`
      union all
      select 'total', null, null, 0, null, coalesce(sum(amount) filter (where is_now), 0), coalesce(sum(amount) filter (where not is_now), 0)
      from line
      union all
      select 'total', null, null, 0, bucket, sum(amount), 0 from line where is_now group by bucket`;

/** Buckets that are not final: their cost may change without a restatement or another price. */
export async function openCosts(
  db: Database,
  of: UsageCells,
  { per, ...range }: ViewRange & ViewPer,
): Promise<ReadonlySet<string>> {
  const buckets = await queryValues<string>(db)`
    select distinct to_char(${bucketOf(per)}, 'YYYY-MM-DD') as bucket from reporting.fct_cost_workspace_daily
    where ${isOf(of, range)} and not is_final
  `;
  return new Set(buckets);
}

function bucketOf(per: "day" | "month"): RawBuilder<unknown> {
  return per === "day" ? sql`usage_date` : monthOf(sql`usage_date`);
}

function isOf(
  { source, workspaceId }: Pick<UsageCells, "source" | "workspaceId">,
  { from, to, currency }: ViewRange,
): RawBuilder<unknown> {
  const workspace = sql`(select usage.shown_id(external_id) from usage.entity where entity_id = ${workspaceId})`;
  return sql`source_id = ${source} and usage_date >= ${from}::date and usage_date < ${to}::date
    and ${isIfGiven("currency", currency)}
    and ${workspaceId === null ? sql`true` : sql`workspace_id = ${workspace}`}`;
}

export async function unpricedIn(
  db: Database,
  { source, workspaceId, range }: { source: string; workspaceId: string | null; range: Days },
): Promise<UnpricedDay[]> {
  return query<UnpricedDay>(db)`
    select usage_date::text as day, workspace_id as "workspaceId", traces
    from reporting_detail.usage_unpriced_daily
    where source_id = ${source} and not has_other_price
      and usage_date >= ${range.from}::date and usage_date < ${range.to}::date
      and ${isIfGiven("workspace_id", workspaceId)}
    order by 1, 2
  `;
}
