/** An exact decimal: so many ten-billionths, the digits of a cost. Counts of traces are amounts too. */
export type Amount = bigint;

const DIGITS = 10;

/** Of a plain decimal with at most ten digits after the point, or of a whole number. */
export function amountOf(value: string | number): Amount {
  const text = String(value);
  const [whole = "", fraction = ""] = text.replace("-", "").split(".");
  const size = BigInt(whole + fraction.padEnd(DIGITS, "0"));
  return text.startsWith("-") ? -size : size;
}

/** With all its digits and no others: `1234.5`. */
export function amountText(amount: Amount): string {
  const digits = String(amount < 0n ? -amount : amount).padStart(DIGITS + 1, "0");
  const fraction = digits.slice(-DIGITS).replace(/0+$/, "");
  return `${amount < 0n ? "-" : ""}${digits.slice(0, -DIGITS)}${fraction === "" ? "" : `.${fraction}`}`;
}

/** The same with thousands separators. */
export function amountShown(amount: Amount): string {
  const [whole = "", fraction] = amountText(amount).split(".");
  return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (fraction === undefined ? "" : `.${fraction}`);
}

/** Near enough to draw it. */
export function amountDrawn(amount: Amount): number {
  return Number(amountText(amount));
}

/** How many per cent one amount is of another, to a tenth; null of nothing. */
export function percentOf(part: Amount, whole: Amount): number | null {
  if (whole === 0n) return null;
  const thousandths = (part * 10_000n) / whole;
  return Math.round(Number(thousandths) / 10) / 10;
}
