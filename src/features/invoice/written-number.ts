import { type Amount, amountOf } from "../../core/domain/usage/amount.ts";
import { decimalSignOf, ungrouped, withPoint } from "../../terminal/csv-rows.ts";

export type DecimalSign = "." | ",";

interface Money {
  /** Without currency and blanks; a sign comes first. */
  readonly number: string;
  /** A code or symbol. Undefined: the text has none. */
  readonly currency: string | undefined;
}

const MARK = String.raw`[A-Z]{3}|[A-Za-z]{0,2}\p{Sc}|kr|zł`;
const DIGITS = String.raw`(?:\d[\d.,'’ ]*|[.,]\d+)(?:[eE][+-]?\d{1,2})?`;
const MONEY = new RegExp(
  String.raw`^(\()?([+-])?(${MARK})? ?([+-])?(${DIGITS})(-)? ?(${MARK})?(\))? ?([A-Z]{3})?$`,
  "u",
);

/** Takes an amount such as `-$1,234.50`, `(1.234,50 €)` or `5 USD` apart. Undefined: the text is not a number. */
export function moneyIn(text: string): Money | undefined {
  const plain = text
    .trim()
    .replace(/\s+/g, " ")
    .replace(/^(\(?)[−–]|[−–](?=\d)/, "$1-");
  const [whole, open, first, before, second, digits = "", last, after, shut, code] = MONEY.exec(plain) ?? [];
  const signs = [open, first, second, last].filter((sign) => sign !== undefined);
  if (whole === undefined || signs.length > 1 || (open === undefined) !== (shut === undefined))
    return undefined;
  const marks = [before, after, code].filter((mark) => mark !== undefined);
  const codes = marks.filter((mark) => /^[A-Z]{3}$/.test(mark));
  // A symbol may have its code, as in `$5.00 USD`.
  if (codes.length > 1 || marks.length - codes.length > 1) return undefined;
  const number = ungrouped(digits.trim());
  if (/[\s'’]/.test(number)) return undefined;
  return {
    number: `${signs.some((sign) => sign !== "+") ? "-" : ""}${number}`,
    currency: codes[0] ?? marks[0],
  };
}

/** Most digits of a number. The database has room for more, so that sums fit. */
const MOST_BEFORE = 18;
const MOST_AFTER = 10;

/** Returns why the number cannot be used as text. */
export function amountIn(number: string, sign: DecimalSign): Amount | string {
  const pointed = withPoint(number, sign);
  if (pointed === undefined) return "is not a number";
  const plain = withoutExponent(pointed);
  const [before = "", after = ""] = plain.replace("-", "").split(".");
  if (before.replace(/^0+/, "").length > MOST_BEFORE)
    return `has more than ${MOST_BEFORE} digits before the point`;
  if (after.length > MOST_AFTER) return `has more than ${MOST_AFTER} digits after the point`;
  return amountOf(plain);
}

function withoutExponent(number: string): string {
  const [, minus = "", before = "", after = "", exponent = "0"] =
    /^([+-]?)(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?$/.exec(number) ?? [];
  const shift = Number(exponent);
  const digits = "0".repeat(Math.max(0, -shift)) + before + after + "0".repeat(Math.max(0, shift));
  const point = before.length + Math.max(0, -shift) + shift;
  const [whole, fraction] = [digits.slice(0, point), digits.slice(point).replace(/0+$/, "")];
  return `${minus === "-" ? "-" : ""}${whole === "" ? "0" : whole}${fraction === "" ? "" : `.${fraction}`}`;
}

interface PlacedNumber {
  readonly number: string;
  readonly place: string;
}

/**
 * The sign before the decimals, as the numbers of a file show it. Undefined: no number shows it. A text says which two
 * numbers contradict each other.
 */
export function signAmong(numbers: readonly PlacedNumber[]): { sign: DecimalSign | undefined } | string {
  const first = new Map<DecimalSign, PlacedNumber>();
  for (const one of numbers) {
    const sign = decimalSignOf(one.number);
    if (sign !== undefined && sign !== "either" && !first.has(sign)) first.set(sign, one);
  }
  const [point, comma] = [first.get("."), first.get(",")];
  if (point === undefined || comma === undefined) {
    return { sign: point === undefined ? comma && "," : "." };
  }
  return `${comma.place}: ${JSON.stringify(comma.number)} has a comma before its decimals, and ${JSON.stringify(point.number)} (${point.place}) has a point`;
}

/** True for `1.234`, which is more than a thousand in some countries, and little more than one in others. */
export function isEither(number: string): boolean {
  return decimalSignOf(number) === "either";
}

export const CURRENCIES: ReadonlySet<string> = new Set(Intl.supportedValuesOf("currency"));
/** Other symbols stand for several currencies. */
const OF_SYMBOL: Readonly<Record<string, string>> = { "€": "EUR", "£": "GBP", US$: "USD" };

/** The currency that all marks of an invoice agree on, or why there is none. */
export function currencyAmong(
  marks: readonly { readonly mark: string; readonly place: string }[],
): { currency: string } | string {
  const codes = new Map<string, string>();
  for (const { mark, place } of marks) {
    const code = CURRENCIES.has(mark) ? mark : OF_SYMBOL[mark];
    if (code !== undefined && !codes.has(code)) codes.set(code, place);
  }
  const [code, other] = codes.keys();
  if (code === undefined) {
    const [symbol] = marks;
    return symbol === undefined
      ? "no currency is written. Give it, such as --field currency=USD"
      : `${symbol.place}: ${symbol.mark} stands for several currencies. Give the currency, such as --field currency=USD`;
  }
  if (other !== undefined) {
    return `${codes.get(other)}: the currency is ${other}, and ${code} in ${codes.get(code)}. An invoice has one billing currency`;
  }
  const unlike = marks.find(
    ({ mark }) => mark !== code && OF_SYMBOL[mark] !== code && !isSymbolOf(mark, code),
  );
  return unlike === undefined
    ? { currency: code }
    : `${unlike.place}: ${unlike.mark} is not ${code}, the currency in ${codes.get(code)}. An invoice has one billing currency`;
}

function isSymbolOf(mark: string, currency: string): boolean {
  return (["symbol", "narrowSymbol"] as const).some((currencyDisplay) =>
    new Intl.NumberFormat("en-US", { style: "currency", currency, currencyDisplay })
      .formatToParts(0)
      .some(({ type, value }) => type === "currency" && value === mark),
  );
}
