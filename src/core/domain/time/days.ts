import { DAY_MS } from "./stride.ts";
import type { Interval } from "./window.ts";

/** Calendar days (UTC) as ISO dates, `2026-03-01`, which sort as text. */

/** Half-open: `to` is excluded. */
export interface Days {
  readonly from: string;
  readonly to: string;
}

export function intervalOf({ from, to }: Days): Interval {
  return { start: Date.parse(from), end: Date.parse(to) };
}

export function dayOf(instant: number): string {
  return new Date(instant).toISOString().slice(0, 10);
}

export function isDay(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text) || text < "1970-01-01" || text >= "9000-01-01") return false;
  const at = Date.parse(text);
  return !Number.isNaN(at) && dayOf(at) === text;
}

export function addDays(day: string, days: number): string {
  return dayOf(Date.parse(day) + days * DAY_MS);
}

export function daysBetween({ from, to }: Days): number {
  return Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS);
}

export function monthStart(day: string): string {
  return `${day.slice(0, 7)}-01`;
}

export function addMonths(day: string, months: number): string {
  const [year, month] = [Number(day.slice(0, 4)), Number(day.slice(5, 7))];
  return new Date(Date.UTC(year, month - 1 + months, 1)).toISOString().slice(0, 10);
}

export function monthsOfDays({ from, to }: Days): Days[] {
  const months: Days[] = [];
  for (let start = monthStart(from); start < to; start = addMonths(start, 1)) {
    months.push({ from: start, to: addMonths(start, 1) });
  }
  return months;
}

/** Splits ranges into whole calendar months and other days. Joins neighbors and leaves out empty parts. */
export function monthsAndDays(ranges: readonly Days[]): { readonly months: Days[]; readonly days: Days[] } {
  const parts = ranges.map(({ from, to }) => {
    const first = from === monthStart(from) ? from : addMonths(from, 1);
    const last = monthStart(to);
    if (first >= last) return { months: [], days: [{ from, to }] };
    return {
      months: [{ from: first, to: last }],
      days: [
        { from, to: first },
        { from: last, to },
      ],
    };
  });
  return {
    months: joined(parts.flatMap(({ months }) => months)),
    days: joined(parts.flatMap(({ days }) => days)),
  };
}

export function joined(ranges: readonly Days[]): Days[] {
  const all: Days[] = [];
  for (const { from, to } of ranges.filter((one) => one.from < one.to)) {
    const last = all.at(-1);
    if (last?.to === from) all[all.length - 1] = { from: last.from, to };
    else all.push({ from, to });
  }
  return all;
}

/**
 * Returns the earlier range of the same length: as many calendar months before whole months, the same days of the month before
 * the beginning of a month, else as many days.
 */
export function rangeBefore(range: Days): Days {
  const months = wholeMonths(range);
  const { from, to } = range;
  const earlier = addMonths(from, -1);
  if (months === null && from === monthStart(from) && to <= addMonths(from, 1)) {
    const end = addDays(earlier, daysBetween(range));
    return end > from ? { from: earlier, to: from } : { from: earlier, to: end };
  }
  return { from: months === null ? addDays(from, -daysBetween(range)) : addMonths(from, -months), to: from };
}

/** Returns the range before. For less than a week inside a month, returns the same weekdays of the week before. */
export function rangeToCompare(range: Days): Days {
  const { from, to } = range;
  const isOfMonth = from === monthStart(from);
  if (isOfMonth || daysBetween(range) >= 7) return rangeBefore(range);
  return { from: addDays(from, -7), to: addDays(to, -7) };
}

/** Returns the range of the same length from a day on: as many calendar months if both are whole months, else as many days. */
export function rangeFrom(day: string, range: Days): Days {
  const months = day === monthStart(day) ? wholeMonths(range) : null;
  return { from: day, to: months === null ? addDays(day, daysBetween(range)) : addMonths(day, months) };
}

function wholeMonths({ from, to }: Days): number | null {
  if (from !== monthStart(from) || to !== monthStart(to)) return null;
  return (
    (Number(to.slice(0, 4)) - Number(from.slice(0, 4))) * 12 +
    Number(to.slice(5, 7)) -
    Number(from.slice(5, 7))
  );
}

/** A UTC instant in its shortest form: `2026-03-01` or `2026-03-01T05:00Z`. */
export function shortInstant(time: number | string): string {
  const text = new Date(time).toISOString();
  return text.endsWith("T00:00:00.000Z") ? text.slice(0, 10) : `${text.slice(0, 16)}Z`;
}
