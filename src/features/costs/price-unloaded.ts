import { type Amount, amountOf, amountText } from "../../core/domain/usage/amount.ts";
import type { UnloadedWorkspace } from "./bill.ts";
import type { CountedOver } from "./price.ts";

export interface TracePrice {
  readonly measure: "traces" | "longlived" | "shortlived";
  readonly currency: string;
  readonly countedOver: CountedOver;
  /** Ascending from 0. */
  readonly tiers: readonly PriceTier[];
  /** Quantity of the month that was already charged at this price. */
  readonly charged: number;
}

export interface PriceTier {
  readonly from: number;
  /** Null: no end. */
  readonly to: number | null;
  /** Exact decimal. */
  readonly unitPrice: string;
}

type Unpriced = Omit<UnloadedWorkspace, "costs">;

/**
 * Adds what the prices would charge for workspaces that no sync loads. A volume price that counts over the source goes on where
 * the charged usage ends. Costs are unknown unless prices charge every trace, and, for a price by retention tier, without the
 * number of long-lived traces.
 */
export function priceUnloaded(
  unloaded: readonly Unpriced[],
  prices: readonly TracePrice[],
): UnloadedWorkspace[] {
  const reached = new Map(prices.map((price) => [price, price.charged]));
  const measures = new Set(prices.map(({ measure }) => measure));
  const isWhole = measures.has("traces") || (measures.has("longlived") && measures.has("shortlived"));
  return unloaded.map((one) => {
    if (!isWhole) return { ...one, costs: [] };
    const costs = new Map<string, Amount>();
    for (const price of prices) {
      const quantity = quantityOf(one, price);
      if (quantity === null) return { ...one, costs: [] };
      const from = price.countedOver === "source" ? (reached.get(price) ?? 0) : 0;
      reached.set(price, from + quantity);
      const cost = costBetween(price.tiers, amountOf(from), amountOf(from + quantity));
      costs.set(price.currency, (costs.get(price.currency) ?? 0n) + cost);
    }
    return { ...one, costs: [...costs].map(([currency, cost]) => ({ currency, cost: amountText(cost) })) };
  });
}

function quantityOf({ traces, longlived }: Unpriced, { measure }: TracePrice): number | null {
  if (measure === "traces") return traces;
  if (longlived === null) return null;
  return measure === "longlived" ? longlived : traces - longlived;
}

export function costBetween(tiers: readonly PriceTier[], start: Amount, end: Amount): Amount {
  return tiers.reduce((sum, { from, to, unitPrice }) => {
    const last = to === null || end < amountOf(to) ? end : amountOf(to);
    const first = start > amountOf(from) ? start : amountOf(from);
    return last <= first ? sum : sum + ((last - first) * amountOf(unitPrice)) / amountOf(1);
  }, 0n);
}
