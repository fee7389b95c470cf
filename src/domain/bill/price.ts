export const PRICED_MEASURES = [
  "traces",
  "longlived",
  "shortlived",
  "nodes_executed",
  "agent_runs",
  "agent_uptime_seconds",
] as const;
/** What a SKU is charged for. Long-lived and short-lived traces are parts of `traces`. */
export type PricedMeasure = (typeof PRICED_MEASURES)[number];

/** A checked unit price, as table `usage.price` holds it. */
export interface Price {
  readonly sku: string;
  /** A plain decimal, at most 8 digits before the point and 10 after it. A float could not hold all its digits. */
  readonly unitPrice: string;
  /** ISO 4217. */
  readonly currency: string;
  /** UTC days. The end is not included; null: until further notice. */
  readonly validFrom: string;
  readonly validTo: string | null;
  /** Null: every source. */
  readonly source: string | null;
  /** The platform's id. Null: every workspace. */
  readonly workspace: string | null;
  /** Default: all traces. */
  readonly measure?: PricedMeasure;
}

/** Digits of `usage.price.unit_price`. Its product with any count fits the 38 digits that BI tools accept. */
const WHOLE_DIGITS = 8;
const FRACTION_DIGITS = 10;

/** A decimal in its shortest plain form (`5E-4` is `0.0005`), or the reason why it is not a unit price. */
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

/** Whether two prices are valid on the same day. Their scopes are not compared. */
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

/** Whether both may apply to the same usage. A price without source or workspace applies to all. */
export function isForSame(one: Price, other: Price): boolean {
  const meets = (a: string | null, b: string | null) => a === null || b === null || a === b;
  return meets(one.source, other.source) && meets(one.workspace, other.workspace);
}

/** SKU, source and workspace: two prices of one scope may not be valid on the same day. */
export function scopeOf({ sku, source, workspace }: Price): string {
  return JSON.stringify([sku, source, workspace]);
}

function startsBefore(price: Price, end: string | null): boolean {
  return end === null || price.validFrom < end;
}
