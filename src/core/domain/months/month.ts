import { addDays, addMonths, type Days, monthStart } from "../time/days.ts";
import type { Interval } from "../time/window.ts";

export interface CalendarMonth {
  readonly name: string;
  /** First day of the month and first day of the next month, ISO. */
  readonly start: string;
  readonly end: string;
}

/** A period to close: a calendar month, or another billing period, whose name is its first day. */
export type Period = CalendarMonth;

export function isMonth({ name }: Period): boolean {
  return monthNamed(name) !== undefined;
}

export function periodText({ name, start, end }: Period): string {
  return isMonth({ name, start, end }) ? name : `billing period ${start} to ${end}`;
}

/** Days of a period since the data start (ISO day). `othersStart`: usage other than traces may be older. */
export function daysWithin({ start, end }: Period, dataStart: string): Interval & { othersStart: number } {
  const first = Date.parse(start);
  return { start: Math.max(first, Date.parse(dataStart)), end: Date.parse(end), othersStart: first };
}

export function daysOfMonth({ start, end }: Pick<CalendarMonth, "start" | "end">): Days {
  return { from: start, to: end };
}

/** Creating a format takes longer than using it a hundred times. */
const TITLE = new Intl.DateTimeFormat("en-US", { month: "long", year: "numeric", timeZone: "UTC" });

export function monthTitle({ start }: Pick<CalendarMonth, "start">): string {
  return TITLE.format(new Date(start));
}

export function monthNamed(text: string): CalendarMonth | undefined {
  if (!/^\d{4}-(0[1-9]|1[0-2])$/.test(text)) return undefined;
  const start = `${text}-01`;
  return { name: text, start, end: addMonths(start, 1) };
}

export function monthAt(instant: number): CalendarMonth {
  return monthNamed(new Date(instant).toISOString().slice(0, 7)) as CalendarMonth;
}

export function monthBefore({ start }: CalendarMonth): CalendarMonth {
  return monthAt(Date.parse(start) - 1);
}

export function daysText({ from, to }: Days): string {
  const last = addDays(to, -1);
  if (from !== monthStart(from) || to !== monthStart(to)) return from === last ? from : `${from} to ${last}`;
  const [first, end] = [from, last].map((day) => monthTitle({ start: day }));
  return first === end ? `${first}` : `${first} to ${end}`;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** A day as pages show it: `24 Nov`, or with the year `24 Nov 2026`. */
export function dayTitle(day: string, { withYear = false } = {}): string {
  const [year, month, date] = day.slice(0, 10).split("-");
  return `${Number(date)} ${MONTHS[Number(month) - 1]}${withYear ? ` ${year}` : ""}`;
}

/** Returns a day as pages show it, `28 Nov 2026`. */
export function shortDay(day: string): string {
  return dayTitle(day, { withYear: true });
}

/** Days in few words, as on pages: `Sep 2026`, `12 Nov 2026`, `8–14 Oct 2026`, `28 Oct – 3 Nov 2026`. */
export function shortDays({ from, to }: Days): string {
  const last = addDays(to, -1);
  if (from === monthStart(from) && to === addMonths(from, 1)) return shortDay(from).slice(2);
  if (from === last) return shortDay(from);
  if (from.slice(0, 7) === last.slice(0, 7)) return `${Number(from.slice(8))}–${shortDay(last)}`;
  return `${dayTitle(from, { withYear: from.slice(0, 4) !== last.slice(0, 4) })} – ${shortDay(last)}`;
}

/** The same, with whole months in full: `October 2026`. */
export function daysTitle({ from, to }: Days): string {
  return from === monthStart(from) && to === monthStart(to)
    ? daysText({ from, to })
    : shortDays({ from, to });
}
