import { addDays, addMonths, isDay } from "../../core/domain/time/days.ts";

export const DATE_ORDERS = ["dmy", "mdy"] as const;
export type DateOrder = (typeof DATE_ORDERS)[number];

/** A date in each order of day and month, as ISO. Undefined: it is no date in that order. */
export type WrittenDate = Readonly<Record<DateOrder, string | undefined>>;

export interface WrittenPeriod {
  readonly start: WrittenDate;
  readonly end: WrittenDate;
  /** Undefined: the file does not say whether the end is a day of the period. */
  readonly isEndIncluded?: boolean;
}

const MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split(" ");
const MONTH = String.raw`(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?`;
const NAMED = [
  { form: new RegExp(String.raw`^${MONTH} (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})$`, "i"), day: 2, month: 1 },
  {
    form: new RegExp(String.raw`^(\d{1,2})(?:\.|st|nd|rd|th)?[ -]${MONTH},?[ -](\d{4})$`, "i"),
    day: 1,
    month: 2,
  },
];

/** Undefined: the text is no date. */
export function dateIn(given: string): WrittenDate | undefined {
  const text = given.trim().replace(/\s+/g, " ");
  const both = (year = "", month = "", day = "") => {
    const iso = isoOf(year, month, day);
    return iso === undefined ? undefined : { dmy: iso, mdy: iso };
  };
  const iso = /^(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?:T00:00(?::00(?:\.0+)?)?Z)?$/.exec(text);
  if (iso !== null) return both(iso[1], iso[3], iso[4]);
  for (const { form, day, month } of NAMED) {
    const parts = form.exec(text);
    if (parts === null) continue;
    const name = (parts[month] ?? "").toLowerCase();
    return both(parts[3], String(MONTHS.indexOf(name) + 1), parts[day]);
  }
  const [, first = "", , second = "", year = ""] = /^(\d{1,2})([-/.])(\d{1,2})\2(\d{4})$/.exec(text) ?? [];
  const [dmy, mdy] = [isoOf(year, second, first), isoOf(year, first, second)];
  return dmy === undefined && mdy === undefined ? undefined : { dmy, mdy };
}

function isoOf(year: string, month: string, day: string): string | undefined {
  const iso = `${year}-${month.padStart(2, "0")}-${day.padStart(2, "0")}`;
  return isDay(iso) ? iso : undefined;
}

/** Undefined: the text is no period such as `Oct 1 – Oct 31, 2026` or `October 2026`. */
export function periodIn(given: string): WrittenPeriod | undefined {
  const text = given.trim().replace(/\s+/g, " ");
  const month = /^\d{4}-\d{2}$/.test(text)
    ? dateIn(`${text}-01`)
    : dateIn(text.replace(/^(\D+)(\d{4})$/, "$1 1, $2"));
  if (month?.dmy !== undefined && /^(?:\d{4}-\d{2}|\D+\d{4})$/.test(text)) {
    const end = addMonths(month.dmy, 1);
    return { start: month, end: { dmy: end, mdy: end }, isEndIncluded: false };
  }
  const [first, last, ...others] = text.split(/ (?:-|to|until|through) | ?[–—] ?/i);
  if (first === undefined || last === undefined || others.length > 0) return undefined;
  // In `Oct 1 – 31, 2026` the month is written once.
  const end = dateIn(last) ?? dateIn(`${first.replace(/\d.*/, "")}${last}`);
  const start = dateIn(first) ?? withYear(first, end?.dmy);
  return start === undefined || end === undefined ? undefined : { start, end };
}

/** In `Dec 15 – Jan 14, 2027` the year is written once, for the end. */
function withYear(first: string, end: string | undefined): WrittenDate | undefined {
  if (end === undefined) return undefined;
  const year = Number(end.slice(0, 4));
  const inYear = (one: number) => dateIn(`${first}, ${one}`) ?? dateIn(`${first} ${one}`);
  const same = inYear(year);
  return same?.dmy !== undefined && same.dmy > end ? inYear(year - 1) : same;
}

/** The order of day and month, as the dates of a file show it. A text says which two dates contradict each other. */
export function orderAmong(
  dates: readonly { readonly date: WrittenDate; readonly text: string; readonly place: string }[],
): { order: DateOrder | undefined } | string {
  const [dayFirst, monthFirst] = [
    dates.find(({ date }) => date.mdy === undefined),
    dates.find(({ date }) => date.dmy === undefined),
  ];
  if (dayFirst === undefined || monthFirst === undefined) {
    return { order: dayFirst !== undefined ? "dmy" : monthFirst !== undefined ? "mdy" : undefined };
  }
  return `${monthFirst.place}: ${JSON.stringify(monthFirst.text)} begins with the month, and ${JSON.stringify(dayFirst.text)} (${dayFirst.place}) with the day`;
}

/**
 * The day after the period. Where the file does not say it, an end on the first of a month, or on the same day of the month as
 * the start, is not a day of the period: so write both kinds of invoices that we know of.
 */
export function endOf(start: string, end: string, isEndIncluded: boolean | undefined): string {
  const isAfter = start < end && (end.endsWith("-01") || start.slice(8) === end.slice(8));
  return (isEndIncluded ?? !isAfter) ? addDays(end, 1) : end;
}
