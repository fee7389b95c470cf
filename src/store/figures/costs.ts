import { type RawBuilder, sql } from "kysely";
import type { Days } from "../../domain/time/days.ts";
import type { Database } from "../db/database.ts";
import { coreSchemaOf, DIMENSIONS } from "../db/dimensions.ts";
import { monthOf, type UsageCells } from "./records.ts";

export interface CostLine {
  /**
   * `none`: what has no id on loaded days. `unloaded`: the same on days that are not loaded by this dimension. `adjustment`:
   * in a closed month, what was closed less what the other lines have now. `rest`: all ids after the first ones.
   */
  readonly kind: "id" | "none" | "unloaded" | "adjustment" | "rest";
  readonly id: string | null;
  readonly name: string | null;
  /** How many ids it stands for; of a bucket of the rest they are not counted. */
  readonly ids: number;
  /** First day of a bucket; null: the whole range. */
  readonly bucket: string | null;
  /** Exact decimals: an estimate is not rounded. */
  readonly cost: string;
}

/** Currencies of prices, and of charges that a close kept. */
export async function currenciesOf(db: Database, sourceId: number): Promise<string[]> {
  const { rows } = await sql<{ currency: string }>`
    select currency from usage.price where source_id is null or source_id = ${sourceId}
    union select c.currency from usage.closed_charge c join usage.month_close m using (close_id) where m.source_id = ${sourceId}
    order by 1
  `.execute(db);
  return rows.map(({ currency }) => currency);
}

interface CostRange extends Days {
  readonly currency: string;
}

/**
 * What the ids cost in one currency, the most first, for the range and for each of its buckets: all that is priced, whatever it counts.
 * The lines of a range add up to the sum of `fct_cost_..._daily`, which they are read from, and so to that of the workspaces.
 */
export async function usageCosts(
  db: Database,
  of: UsageCells,
  { per, top, masked, ...range }: CostRange & { per: "day" | "month"; top: number; masked: boolean },
): Promise<CostLine[]> {
  const { id } = DIMENSIONS[of.by];
  const view = `fct_cost_${of.by}_daily`;
  const { rows } = await sql<CostLine>`
    with cost as materialized (
      select case when ${sql.ref(id)} is null then 'unloaded' when ${sql.ref(id)} = '(none)' then 'none'
                  when ${sql.ref(id)} = '(adjustment)' then 'adjustment' else 'id' end as kind,
             ${sql.ref(id)} as id, ${bucketOf(per)} as bucket, estimated_cost as cost
      from ${sql.id(coreSchemaOf(view), view)}
      where ${isOf(of, range)}
    ),
    placed as materialized (
      select id, row_number() over (order by sum(cost) desc, id collate "C") as place from cost where kind = 'id' group by id
    ),
    line as (
      select case when p.place > ${top} then 'rest' else c.kind end as kind, case when p.place <= ${top} then p.place end as place,
             p.place as any_place, c.id, c.bucket, c.cost
      from cost c left join placed p on p.id = c.id and c.kind = 'id'
    ),
    folded as (
      select kind, place, case when place is not null then min(id) end as id, count(distinct any_place)::integer as ids,
             grouping(bucket) as is_whole, bucket, sum(cost) as cost
      from line
      group by grouping sets ((kind, place), (kind, place, bucket))
    )
    select f.kind, f.id, ${of.by === "user" && masked ? sql`case when n.name is not null then 'user ' || f.id end` : sql`n.name`} as name,
           f.ids, to_char(f.bucket, 'YYYY-MM-DD') as bucket, trim_scale(f.cost)::text as cost
    from folded f
    -- Those of the first ids alone.
    left join (
      select dimension_id as id, dimension_name as name from usage.labelled_entity
      where source_id = ${of.sourceId} and dimension = ${of.by} and dimension_id in (select id from placed where place <= ${top})
    ) n using (id)
    order by f.is_whole desc, array_position('{id,none,unloaded,adjustment,rest}', f.kind), f.place, f.bucket
  `.execute(db);
  return rows;
}

/** What each workspace costs, by its id. */
export async function workspaceCosts(
  db: Database,
  of: UsageCells,
  range: CostRange,
): Promise<ReadonlyMap<string, string>> {
  const { rows } = await sql<{ id: string; cost: string }>`
    select workspace_id as id, trim_scale(sum(estimated_cost))::text as cost from reporting.fct_cost_workspace_daily
    where ${isOf(of, range)} group by 1
  `.execute(db);
  return new Map(rows.map(({ id, cost }) => [id, cost]));
}

/** The buckets in which a workspace's cost may still change without a restatement or other prices. */
export async function openCosts(
  db: Database,
  of: UsageCells,
  { per, ...range }: CostRange & { per: "day" | "month" },
): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ bucket: string }>`
    select distinct to_char(${bucketOf(per)}, 'YYYY-MM-DD') as bucket from reporting.fct_cost_workspace_daily
    where ${isOf(of, range)} and not is_final
  `.execute(db);
  return new Set(rows.map(({ bucket }) => bucket));
}

function bucketOf(per: "day" | "month"): RawBuilder<unknown> {
  return per === "day" ? sql`usage_date` : monthOf(sql`usage_date`);
}

/** A condition on a view of costs. */
function isOf({ source, workspaceId }: UsageCells, { from, to, currency }: CostRange): RawBuilder<unknown> {
  const workspace = sql`(select usage.shown_id(external_id) from usage.entity where entity_id = ${workspaceId})`;
  return sql`source_id = ${source} and usage_date >= ${from}::date and usage_date < ${to}::date and currency = ${currency}
    and ${workspaceId === null ? sql`true` : sql`workspace_id = ${workspace}`}`;
}
