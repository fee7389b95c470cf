import { MEASURE_DIGITS, type Measure } from "./meter.ts";

/** An exact decimal in ten-billionths, the digits of a cost. Counts of traces are amounts too. */
export type Amount = bigint;

const DIGITS = 10;

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

const NO_DECIMALS = new Set("BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF".split(" "));
const THREE_DECIMALS = new Set("BHD IQD JOD KWD LYD OMR TND".split(" "));

/** Digits after the point of a currency's smallest unit, by ISO 4217. `usage.minor_digits` does the same in SQL. */
export function minorDigits(currency: string): number {
  return NO_DECIMALS.has(currency) ? 0 : THREE_DECIMALS.has(currency) ? 3 : 2;
}

function unitOf(currency: string): Amount {
  return 10n ** BigInt(DIGITS - minorDigits(currency));
}

/** Rounds to the currency's smallest unit, such as a cent, half away from zero. */
export function roundedTo(currency: string, amount: Amount): Amount {
  const unit = unitOf(currency);
  const size = ((amount < 0n ? -amount : amount) + unit / 2n) / unit;
  return (amount < 0n ? -size : size) * unit;
}

function sumOf(amounts: readonly Amount[]): Amount {
  return amounts.reduce((sum, one) => sum + one, 0n);
}

/**
 * Rounds amounts of one currency so that they add up to their rounded sum: each is rounded down, and the units that are left go
 * to those that lost the most (largest remainder). Equal losses: to the first. `whole`: their exact sum, if the parts were cut.
 */
export function roundedParts(
  currency: string,
  parts: readonly Amount[],
  whole: Amount = sumOf(parts),
): Amount[] {
  const unit = unitOf(currency);
  const lost = parts.map((part) => ((part % unit) + unit) % unit);
  const down = parts.map((part, n) => part - (lost[n] as Amount));
  const left = Number((roundedTo(currency, whole) - sumOf(down)) / unit);
  const byLoss = [...lost.keys()].sort((a, b) => Number((lost[b] as Amount) - (lost[a] as Amount)) || a - b);
  const gains = new Set(byLoss.slice(0, left));
  return down.map((part, n) => (gains.has(n) ? part + unit : part));
}

/**
 * Rounds to the currency's smallest unit, half away from zero, with thousands separators: `1,234.50`. An amount below half a
 * unit is not shown as zero.
 */
export function centsShown(amount: Amount, currency = "USD"): string {
  const rounded = roundedTo(currency, amount);
  return rounded === 0n && amount !== 0n ? amountShown(amount) : roundShown(rounded, currency);
}

export function roundShown(amount: Amount, currency: string): string {
  const [whole = "", fraction = ""] = amountShown(roundedTo(currency, amount)).split(".");
  const digits = minorDigits(currency);
  return digits === 0 ? whole : `${whole}.${fraction.padEnd(digits, "0")}`;
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
