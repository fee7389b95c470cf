import { MEASURE_DIGITS, METER, STANDARD_UNITS } from "../../core/domain/usage/meter.ts";

export const PRICED_MEASURES = [
  "traces",
  "longlived",
  "shortlived",
  "nodes_executed",
  "agent_runs",
  "agent_uptime_seconds",
  "lcu",
  "lsu",
  ...STANDARD_UNITS,
] as const;
/** The quantity that a SKU is charged for. Long-lived and short-lived traces are parts of `traces`. */
export type PricedMeasure = (typeof PRICED_MEASURES)[number];

export function isOnNoInvoice(price: Price, unitsSince: string): boolean {
  const isOfDeployments = METER.deployments.measures.some((measure) => measure === measureOf(price));
  return isOfDeployments && (price.validTo === null || price.validTo > unitsSince);
}

export interface Price {
  readonly sku: string;
  /** Plain decimal with at most 8 digits before the point and 10 after it, too many for a float. */
  readonly unitPrice: string;
  readonly currency: string;
  /** UTC days, end exclusive. Null: no end. */
  readonly validFrom: string;
  readonly validTo: string | null;
  readonly source: string | null;
  readonly workspace: string | null;
  readonly measure?: PricedMeasure;
}

/** Digits of `usage.price.unit_price`. The product of a price and any count fits the 38 digits that BI tools accept. */
const WHOLE_DIGITS = 8;
const FRACTION_DIGITS = 10;

/** The shortest plain decimal (`0.0005` for `5E-4`), or why the text is no unit price. */
export function parseUnitPrice(text: string): { price: string } | { why: string } {
  const [, sign = "", whole = "", fraction = "", exponent = "0"] =
    /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,2}))?$/.exec(text) ?? [];
  if (whole + fraction === "") return { why: "is not a decimal number such as 0.0005" };
  const shift = Number(exponent);
  const digits = (whole + fraction).padEnd(whole.length + Math.max(shift, 0), "0");
  const point = whole.length + shift;
  const padded = point < 0 ? "0".repeat(-point) + digits : digits;
  const at = Math.max(point, 0);
  const before = padded.slice(0, at).replace(/^0+/, "");
  const after = padded.slice(at).replace(/0+$/, "");
  if (sign === "-" && before + after !== "") return { why: "is negative" };
  if (before.length > WHOLE_DIGITS) return { why: `has more than ${WHOLE_DIGITS} digits before the point` };
  if (after.length > FRACTION_DIGITS) {
    return { why: `has more than ${FRACTION_DIGITS} digits after the point` };
  }
  return { price: `${before === "" ? "0" : before}${after === "" ? "" : `.${after}`}` };
}

/** Most digits of a cost after the point. A price may have that many less those of its measure. */
const COST_DIGITS = 10;

export function measurePriceProblem(price: string, measure: PricedMeasure): string | undefined {
  const [, after = ""] = price.split(".");
  const own = measure === "longlived" || measure === "shortlived" ? 0 : MEASURE_DIGITS[measure];
  if (after.length <= COST_DIGITS - own) return undefined;
  return `has more than ${COST_DIGITS - own} digits after the point, and is a price of ${measure}, which has ${own} itself: costs have ${COST_DIGITS} at most`;
}

/** Compares only days. */
export function overlaps(one: Price, other: Price): boolean {
  return startsBefore(one, other.validTo) && startsBefore(other, one.validTo);
}

export function describePrice(price: Price): string {
  const of = price.workspace ?? price.source ?? "every source";
  return `${price.sku} of ${of}, ${price.validFrom} to ${price.validTo ?? "further notice"}: ${price.unitPrice} ${price.currency}`;
}

export function measureOf({ measure = "traces" }: Pick<Price, "measure">): PricedMeasure {
  return measure;
}

export function isForSame(one: Price, other: Price): boolean {
  const meets = (a: string | null, b: string | null) => a === null || b === null || a === b;
  return meets(one.source, other.source) && meets(one.workspace, other.workspace);
}

export function scopeOf({ sku, source, workspace }: Price): string {
  return JSON.stringify([sku, source, workspace]);
}

function startsBefore(price: Price, end: string | null): boolean {
  return end === null || price.validFrom < end;
}

export const COUNTED_OVER = ["source", "workspace"] as const;
/** Volume steps count all traces of the source, or those of each workspace. */
export type CountedOver = (typeof COUNTED_OVER)[number];

interface VolumeTier {
  readonly fromQuantity: number;
  readonly unitPrice: string;
}

export interface TieredPrice extends Price {
  readonly countedOver: CountedOver;
  readonly tiers: readonly VolumeTier[];
}

/** A price and its place in the file: `line 3`. Each volume step has a line of its own. */
export interface PriceLine {
  readonly where: string;
  readonly price: Price & { readonly fromQuantity?: number; readonly countedOver?: CountedOver | null };
}

export interface PlacedPrice {
  readonly where: string;
  readonly price: TieredPrice;
}

/**
 * Joins each price's base line and steps, which have the same SKU, source, workspace and days. Also returns the problems of
 * steps.
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
    // A second base line gets no steps, and is reported as an overlap.
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

/** Steps of one price share currency and way of counting, and begin at different quantities. */
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

export interface UnpricedUsage {
  readonly prices: number;
  readonly days: number;
  readonly traces: number;
  /** ISO days. Null: none. */
  readonly firstDay: string | null;
  readonly lastDay: string | null;
}

/** Undefined: every day has a price. */
export function describeUnpriced({ days, traces, firstDay, lastDay }: UnpricedUsage): string | undefined {
  if (days === 0) return undefined;
  const [what, when] = days === 1 ? ["1 day", firstDay] : [`${days} days`, `${firstDay} to ${lastDay}`];
  return `${what} with ${traces.toLocaleString("en-US")} traces (${when}) ${days === 1 ? "has" : "have"} no price, so the estimated costs leave them out. See reporting_detail.usage_unpriced_daily.`;
}

export interface UnpricedDay {
  readonly day: string;
  readonly workspaceId: string;
  readonly traces: number;
}

export function describeUnpricedDays(unpriced: readonly UnpricedDay[]): string | undefined {
  const [first, last] = [unpriced[0]?.day, unpriced.at(-1)?.day];
  if (first === undefined) return undefined;
  const traces = unpriced.reduce((sum, one) => sum + one.traces, 0).toLocaleString("en-US");
  return `${traces} traces (${first === last ? first : `${first} to ${last}`})`;
}

export function describeCosts(costs: UnpricedUsage): string {
  if (costs.prices === 0) return "No prices are imported, so no costs are estimated.";
  return describeUnpriced(costs) ?? "Every loaded day with traces has a price.";
}
