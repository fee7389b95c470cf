import { type Amount, amountOf, amountText } from "../../core/domain/usage/amount.ts";
import type { Measure, Meter } from "../../core/domain/usage/meter.ts";
import { type Database, query } from "../../core/store/db/query.ts";
import type { CurrencyCost } from "./bill.ts";
import { costBetween, type PriceTier } from "./price-unloaded.ts";

/** Usage of a workspace that the charges of its month lack or, below zero, have too much. */
export interface Unsure {
  readonly source: string;
  readonly workspaceId: string;
  readonly meter: Meter;
  readonly measure: Measure;
  /** A UTC day of the month, whose prices apply. */
  readonly day: string;
  readonly quantity: Amount;
}

/** What a difference is about. Two of one workspace and measure whose periods overlap may report the same usage. */
export interface Compared extends Pick<Unsure, "workspaceId" | "meter" | "measure"> {
  /** ISO days or instants, the end not included. */
  readonly from: string;
  readonly to: string;
}

/**
 * Sums the sizes by currency: what is too much for one workspace does not make up for what another lacks. Of differences that
 * overlap, such as those that the export and a monthly total show, the one with the largest worth counts.
 */
export function totalWorth(
  all: readonly { readonly about: Compared; readonly worth: readonly CurrencyCost[] | undefined }[],
): CurrencyCost[] {
  const sized = all
    .map(({ about, worth = [] }) => ({
      about,
      starts: Date.parse(about.from),
      ends: Date.parse(about.to),
      worth: worth.map(({ currency, cost }) => ({ currency, cost: sizeOf(amountOf(cost)) })),
    }))
    .sort((a, b) => Number((b.worth[0]?.cost ?? 0n) - (a.worth[0]?.cost ?? 0n)));
  const ofSame = Map.groupBy(sized, ({ about: { workspaceId, meter, measure } }) =>
    JSON.stringify([workspaceId, meter, measure]),
  );
  const costs = [...ofSame.values()].flatMap((same) => {
    const counted: typeof sized = [];
    for (const one of same)
      if (!counted.some(({ starts, ends }) => starts < one.ends && one.starts < ends)) counted.push(one);
    return counted.flatMap(({ worth }) => worth);
  });
  return [...Map.groupBy(costs, ({ currency }) => currency)].map(([currency, some]) => ({
    currency,
    cost: amountText(some.reduce((sum, { cost }) => sum + cost, 0n)),
  }));
}

const sizeOf = (amount: Amount) => (amount < 0n ? -amount : amount);

interface PriceInForce {
  readonly n: number;
  readonly currency: string;
  readonly tiers: readonly PriceTier[];
  /** Exact decimal: what the month charges already, in the volume tiers that the workspace fills. */
  readonly charged: string;
}

/**
 * Returns what the bill of each month would change by, in the order of `all`: the prices in force on the day, from the end of
 * what is charged. Undefined: no price is valid. The platform gives evaluator spend in US dollars.
 */
export async function worthOf(
  db: Database,
  all: readonly Unsure[],
): Promise<(readonly CurrencyCost[] | undefined)[]> {
  const wanted = all.map(({ source, workspaceId, meter, measure, day }, n) => {
    const priced = measure === "traces" ? meter : measure;
    return { n, source, workspace: workspaceId, day, priced };
  });
  const prices = await query<PriceInForce>(db)`
    select w.n, p.currency, c.charged::text as charged,
           (select json_agg(json_build_object('from', v.from_quantity, 'to', v.to_quantity, 'unitPrice', v.unit_price::text)
                            order by v.from_quantity)
            from usage.volume_tier v where v.price_id = p.price_id) as tiers
    from json_to_recordset(${JSON.stringify(wanted)}::json) w (n integer, source text, workspace text, day date, priced text)
    join usage.measured_price p on p.slug = w.source and p.workspace_id = usage.shown_id(w.workspace) and p.days @> w.day
     and (p.measure = w.priced or p.measure = 'shortlived' and w.priced = 'traces')
    cross join lateral (
      select coalesce(sum(c.quantity), 0) as charged
      from usage.booked_charge c
      join usage.entity e on e.entity_id = c.workspace_id and e.source_id = p.source_id
      join usage.price o on o.price_id = c.price_id
      where c.sku = p.sku and c.usage_date >= date_trunc('month', w.day)::date
        and c.usage_date < (date_trunc('month', w.day) + interval '1 month')::date
        and o.source_id is not distinct from p.price_source_id and o.workspace_id is not distinct from p.price_workspace_id
        and (p.counted_over <> 'workspace' or c.workspace_id = p.workspace_entity_id)
    ) c
    order by w.n, p.sku
  `;
  const byNumber = Map.groupBy(prices, ({ n }) => n);
  return all.map(({ measure, quantity }, n) => {
    if (measure === "spend_usd") return [{ currency: "USD", cost: amountText(quantity) }];
    const costs = new Map<string, Amount>();
    for (const { currency, tiers, charged } of byNumber.get(n) ?? []) {
      const end = amountOf(charged);
      const cost =
        quantity < 0n ? -costBetween(tiers, end + quantity, end) : costBetween(tiers, end, end + quantity);
      costs.set(currency, (costs.get(currency) ?? 0n) + cost);
    }
    if (costs.size === 0) return undefined;
    return [...costs].map(([currency, cost]) => ({ currency, cost: amountText(cost) }));
  });
}
