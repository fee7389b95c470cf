/** A unit price as somebody wrote it down, checked: what `usage.price` holds. */
export interface Price {
  readonly sku: string;
  /** A plain decimal, at most 8 digits before the point and 10 after it: never a number, which could not hold it. */
  readonly unitPrice: string;
  /** ISO 4217. */
  readonly currency: string;
  /** UTC days; the end is not included, null is until further notice. */
  readonly validFrom: string;
  readonly validTo: string | null;
  /** Null: of every source. */
  readonly source: string | null;
  /** The platform's id. Null: of every workspace. */
  readonly workspace: string | null;
}

/** Digits that `usage.price.unit_price` has room for: its product with any count fits the 38 that BI tools take. */
const WHOLE_DIGITS = 8;
const FRACTION_DIGITS = 10;

/** A decimal in its shortest plain form (`5E-4` is `0.0005`), or why it cannot be a unit price. */
export function parseUnitPrice(text: string): { price: string } | { why: string } {
  const [, sign = "", whole = "", fraction = "", exponent = "0"] =
    /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,2}))?$/.exec(text) ?? [];
  if (whole + fraction === "") return { why: "is no decimal number such as 0.0005" };
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
    return { why: `has more than ${FRACTION_DIGITS} digits after the point, and is not rounded` };
  }
  return { price: `${before === "" ? "0" : before}${after === "" ? "" : `.${after}`}` };
}

/** Whether a text is a day of the calendar, `2026-02-28`. */
export function isDay(text: string): boolean {
  return (
    /^[1-9]\d{3}-\d{2}-\d{2}$/.test(text) &&
    !Number.isNaN(Date.parse(text)) &&
    new Date(text).toISOString().startsWith(text)
  );
}

/** Whether two prices share a day on which they are valid, whatever they are of. */
export function overlaps(one: Price, other: Price): boolean {
  return startsBefore(one, other.validTo) && startsBefore(other, one.validTo);
}

/** The same text for prices that say the same, and for no others. */
export function textOf(price: Price): string {
  return JSON.stringify([scopeOf(price), price.unitPrice, price.currency, price.validFrom, price.validTo]);
}

/** The price in a few words, for a message. */
export function describePrice(price: Price): string {
  const of = price.workspace ?? price.source ?? "every source";
  return `${price.sku} of ${of}, ${price.validFrom} to ${price.validTo ?? "further notice"}: ${price.unitPrice} ${price.currency}`;
}

/** What no two prices may have at once: the same text for the same SKU, source and workspace. */
export function scopeOf({ sku, source, workspace }: Price): string {
  return JSON.stringify([sku, source, workspace]);
}

function startsBefore(price: Price, end: string | null): boolean {
  return end === null || price.validFrom < end;
}
