import { sql } from "kysely";
import type { TieredPrice } from "../../domain/bill/volume-tier.ts";
import type { Database } from "../db/database.ts";

export interface StoredPrice extends TieredPrice {
  readonly priceId: number;
}

/** All prices, by SKU, scope and day. */
export async function listPrices(db: Database): Promise<StoredPrice[]> {
  const { rows } = await sql<StoredPrice>`
    select p.price_id as "priceId", k.name as sku, trim_scale(p.unit_price)::text as "unitPrice", p.currency,
           to_char(p.valid_from, 'YYYY-MM-DD') as "validFrom", to_char(p.valid_to, 'YYYY-MM-DD') as "validTo",
           s.slug as source, w.external_id as workspace, p.counted_over as "countedOver", k.measure,
           (select coalesce(
              json_agg(json_build_object('fromQuantity', from_quantity, 'unitPrice', trim_scale(unit_price)::text)
                       order by from_quantity), '[]')
            from usage.price_tier t where t.price_id = p.price_id) as tiers
    from usage.price p
    join usage.sku k using (sku_id)
    left join usage.source s on s.source_id = p.source_id
    left join usage.entity w on w.entity_id = p.workspace_id
    order by k.name collate "C", s.slug nulls first, w.external_id nulls first, p.valid_from
  `.execute(db);
  return rows;
}

/** What the SKUs of closed charges count. Their prices may be gone. */
export async function closedMeasures(db: Database): Promise<Map<string, string>> {
  const rows = await db.selectFrom("closed_charge").select(["sku", "measure"]).distinct().execute();
  return new Map(rows.map(({ sku, measure }) => [sku, measure]));
}

/** Closed months whose estimated cost is not what they were closed with, such as `default 2026-03`. */
export async function adjustedCosts(db: Database): Promise<string[]> {
  const { rows } = await sql<{ month: string }>`
    select distinct source_id || ' ' || to_char(month_start, 'YYYY-MM') as month
    from reporting.usage_month_close_cost where adjustment_cost <> 0 order by 1
  `.execute(db);
  return rows.map(({ month }) => month);
}

/** Keeps others from changing prices until the transaction ends. They can still read them. */
export async function lockPrices(db: Database): Promise<void> {
  await sql`lock table usage.price in share row exclusive mode`.execute(db);
}

/** Slugs of the sources, each with the platform's ids of its known workspaces. */
export async function knownWorkspaces(db: Database): Promise<{ source: string; workspaces: string[] }[]> {
  const { rows } = await sql<{ source: string; workspaces: string[] }>`
    select s.slug as source,
           array(
             select e.external_id from usage.entity e join usage.workspace w using (entity_id)
             where e.source_id = s.source_id order by 1
           ) as workspaces
    from usage.source s
    order by s.slug
  `.execute(db);
  return rows;
}

export async function removePrices(db: Database, priceIds: readonly number[]): Promise<void> {
  await sql`delete from usage.price where price_id = any (${priceIds}::integer[])`.execute(db);
  await sql`delete from usage.sku k where not exists (select from usage.price p where p.sku_id = k.sku_id)`.execute(
    db,
  );
}

/** Enters prices whose source and workspace are known. Errors: `price_no_overlap` of the schema where two overlap. */
export async function addPrices(db: Database, prices: readonly TieredPrice[]): Promise<void> {
  if (prices.length === 0) return;
  const given = JSON.stringify(prices);
  await sql`
    insert into usage.sku (name, measure)
    select distinct p ->> 'sku', coalesce(p ->> 'measure', 'traces') from jsonb_array_elements(${given}::jsonb) p
    on conflict on constraint sku_name_key do nothing
  `.execute(db);
  // Postgres casts each text itself, so that no price passes through a float. Prices of one scope begin on different days.
  await sql`
    with given as (
      select p, k.sku_id, s.source_id, e.entity_id
      from jsonb_array_elements(${given}::jsonb) p
      join usage.sku k on k.name = p ->> 'sku'
      left join usage.source s on s.slug = p ->> 'source'
      left join usage.entity e
        on e.source_id = s.source_id and e.dimension = 'workspace' and e.external_id = p ->> 'workspace'
    ), added as (
      insert into usage.price (sku_id, source_id, workspace_id, unit_price, currency, valid_from, valid_to, counted_over)
      select sku_id, source_id, entity_id, (p ->> 'unitPrice')::numeric, p ->> 'currency', (p ->> 'validFrom')::date,
             (p ->> 'validTo')::date, p ->> 'countedOver'
      from given
      returning price_id, sku_id, source_id, workspace_id, valid_from
    )
    insert into usage.price_tier (price_id, from_quantity, unit_price)
    select a.price_id, (t ->> 'fromQuantity')::bigint, (t ->> 'unitPrice')::numeric
    from given g
    join added a
      on a.sku_id = g.sku_id and a.source_id is not distinct from g.source_id
     and a.workspace_id is not distinct from g.entity_id and a.valid_from = (g.p ->> 'validFrom')::date
    cross join jsonb_array_elements(g.p -> 'tiers') t
  `.execute(db);
}
