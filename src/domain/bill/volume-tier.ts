import { measureOf, type Price, scopeOf } from "./price.ts";

export const COUNTED_OVER = ["source", "workspace"] as const;
/** Whose traces of a calendar month fill the tiers: those of the whole source, or of each workspace by itself. */
type CountedOver = (typeof COUNTED_OVER)[number];

/** What traces cost after the first `fromQuantity` ones of a calendar month. */
interface VolumeTier {
  readonly fromQuantity: number;
  readonly unitPrice: string;
}

/** A price with its volume tiers, ascending. `unitPrice` is that of the traces before the first of them. */
export interface TieredPrice extends Price {
  readonly countedOver: CountedOver;
  readonly tiers: readonly VolumeTier[];
}

/** A price, and its place in the file: `line 3`. The tiers of one price are lines of their own. */
export interface PriceLine {
  readonly where: string;
  readonly price: Price & { readonly fromQuantity?: number; readonly countedOver?: CountedOver | null };
}

export interface PlacedPrice {
  readonly where: string;
  readonly price: TieredPrice;
}

/**
 * Joins the lines of each price: the line of the first trace on, and those of its tiers, which have the same SKU, source,
 * workspace and days. Returns what is wrong with other lines as text.
 */
export function joinTiers(lines: readonly PriceLine[]): { joined: PlacedPrice[]; problems: string[] } {
  const problems: string[] = [];
  const isFirst = ({ price }: PriceLine) => (price.fromQuantity ?? 0) === 0;
  const tiersOf = Map.groupBy(
    lines.filter((line) => !isFirst(line)),
    keyOf,
  );
  const joined = lines.filter(isFirst).map((line): PlacedPrice => {
    const tiers = tiersOf.get(keyOf(line)) ?? [];
    // A second line of the first trace on is an overlap of prices, and is named as such.
    tiersOf.delete(keyOf(line));
    problems.push(...disagreements(line, tiers));
    const { fromQuantity: _, ...price } = line.price;
    const countedOver = [line, ...tiers].map((one) => one.price.countedOver).find((over) => over) ?? "source";
    return { where: line.where, price: { ...price, countedOver, tiers: tiers.map(toTier).sort(ascending) } };
  });
  for (const { where, price } of [...tiersOf.values()].flat()) {
    problems.push(
      `${where}, column "from_quantity": no line has the price of the traces before ${price.fromQuantity}. Add one with from_quantity 0 and the same SKU, source, workspace and days; for a free allowance its unit_price is 0`,
    );
  }
  return { joined, problems };
}

/** Equal for equal prices only. */
export function textOf(price: TieredPrice): string {
  const { unitPrice, currency, validFrom, validTo, countedOver, tiers } = price;
  const steps = tiers.map((tier) => [tier.fromQuantity, tier.unitPrice]);
  return JSON.stringify([
    ...[scopeOf(price), measureOf(price), unitPrice, currency, validFrom, validTo, countedOver, steps],
  ]);
}

function toTier({ price }: PriceLine): VolumeTier {
  return { fromQuantity: price.fromQuantity ?? 0, unitPrice: price.unitPrice };
}

function ascending(one: VolumeTier, other: VolumeTier): number {
  return one.fromQuantity - other.fromQuantity;
}

function keyOf({ price }: PriceLine): string {
  return JSON.stringify([scopeOf(price), price.validFrom, price.validTo]);
}

/** Tiers of one price have one currency and one way of counting, and begin at different quantities. */
function disagreements(first: PriceLine, tiers: readonly PriceLine[]): string[] {
  const problems: string[] = [];
  const counting = [first, ...tiers].find(({ price }) => price.countedOver);
  tiers.forEach(({ where, price }, at) => {
    const twin = tiers.slice(0, at).find((one) => one.price.fromQuantity === price.fromQuantity);
    if (twin !== undefined) {
      problems.push(`${where}, column "from_quantity": ${price.fromQuantity} is that of ${twin.where} too`);
    }
    if (price.currency !== first.price.currency) {
      problems.push(
        `${where}, column "currency": ${price.currency} is not the currency of ${first.where}, whose tier this is (${first.price.currency})`,
      );
    }
    if (price.countedOver && price.countedOver !== counting?.price.countedOver) {
      problems.push(
        `${where}, column "counted_over": "${price.countedOver}" differs from ${counting?.where}, another tier of the same price`,
      );
    }
  });
  return problems;
}
