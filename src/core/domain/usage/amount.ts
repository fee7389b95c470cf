import { MEASURE_DIGITS, type Measure } from "./meter.ts";

/** An exact decimal in ten-billionths, the digits of a cost. Counts of traces are amounts too. */
export type Amount = bigint;

const DIGITS = 10;
const CENT = 10n ** BigInt(DIGITS - 2);

/** Converts a whole number, or a plain decimal with at most ten digits after the point. */
export function amountOf(value: string | number): Amount {
  const text = String(value);
  const [whole = "", fraction = ""] = text.replace("-", "").split(".");
  const size = BigInt(whole + fraction.padEnd(DIGITS, "0"));
  return text.startsWith("-") ? -size : size;
}

/** Converts a plain decimal, cut after ten digits. Null and undefined give zero. */
export function amountCut(text: string | null | undefined): Amount {
  const [whole = "0", fraction = ""] = (text ?? "0").split(".");
  return amountOf(`${whole}.${fraction.slice(0, DIGITS)}`);
}

const UNIT_DIGITS = MEASURE_DIGITS.lcu;
const UNITS = new RegExp(`^(\\d{1,12})(?:\\.(\\d{1,${UNIT_DIGITS}}))?$`);

/** Converts a decimal of the platform such as "0.045" into whole millionths. Undefined if that is not exact. */
export function fromUnitText(text: string): number | undefined {
  const [, whole, fraction = ""] = UNITS.exec(text) ?? [];
  if (whole === undefined) return undefined;
  const millionths = Number(whole + fraction.padEnd(UNIT_DIGITS, "0"));
  return Number.isSafeInteger(millionths) ? millionths : undefined;
}

/**
 * Converts US dollars to the nearest whole billionth, because later digits of the platform's floating-point numbers are noise.
 * Undefined unless the amount is at least 0.
 */
export function fromUsd(amount: unknown): number | undefined {
  if (typeof amount !== "number" || !(amount >= 0)) return undefined;
  const billionths = Math.round(amount * 10 ** MEASURE_DIGITS.spend_usd);
  return Number.isSafeInteger(billionths) ? billionths : undefined;
}

/** Converts a stored number exactly. `usage.amount_of` does the same in SQL. */
export function amountOfStored(measure: Measure, stored: number): Amount {
  return BigInt(stored) * 10n ** BigInt(DIGITS - MEASURE_DIGITS[measure]);
}

/** Converts a stored number to a JavaScript number, whose shortest decimal is exact. */
export function inUnits<N extends number | null>(measure: Measure, stored: N): N {
  return (stored === null ? null : stored / 10 ** MEASURE_DIGITS[measure]) as N;
}

export function amountText(amount: Amount): string {
  const digits = String(amount < 0n ? -amount : amount).padStart(DIGITS + 1, "0");
  const fraction = digits.slice(-DIGITS).replace(/0+$/, "");
  return `${amount < 0n ? "-" : ""}${digits.slice(0, -DIGITS)}${fraction === "" ? "" : `.${fraction}`}`;
}

export function amountShown(amount: Amount): string {
  const [whole = "", fraction] = amountText(amount).split(".");
  return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (fraction === undefined ? "" : `.${fraction}`);
}

/**
 * Rounds to cents, half away from zero, with thousands separators: `1,234.50`. An amount below half a cent is not
 * shown as zero.
 */
export function centsShown(amount: Amount): string {
  const size = amount < 0n ? -amount : amount;
  const cents = (size + CENT / 2n) / CENT;
  if (cents === 0n && amount !== 0n) return amountShown(amount);
  const text = String(cents).padStart(3, "0");
  const whole = text.slice(0, -2).replace(/\B(?=(\d{3})+$)/g, ",");
  return `${amount < 0n ? "-" : ""}${whole}.${text.slice(-2)}`;
}

export function amountDrawn(amount: Amount): number {
  return Number(amountText(amount));
}

/** Percentage, rounded to the nearest tenth, halves away from zero. Null if `whole` is zero. */
export function percentOf(part: Amount, whole: Amount): number | null {
  if (whole === 0n) return null;
  const size = (amount: Amount) => (amount < 0n ? -amount : amount);
  const tenths = ((size(part) * 2_000n) / size(whole) + 1n) / 2n;
  return Number(part < 0n === whole < 0n ? tenths : -tenths) / 10;
}
