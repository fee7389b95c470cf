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

const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", timeZone: "UTC" });
const DAY_MONTH = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
const MONTH_YEAR = new Intl.DateTimeFormat("en-GB", { month: "short", year: "numeric", timeZone: "UTC" });
const SHORT_DAY = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  year: "numeric",
  timeZone: "UTC",
});

/** Returns a day as pages show it, `28 Nov 2026`. */
export function shortDay(day: string): string {
  return SHORT_DAY.format(new Date(day)).replace("Sept", "Sep");
}

/** Days in few words, as on pages: `Sep 2026`, `12 Nov 2026`, `8–14 Oct 2026`, `28 Oct – 3 Nov 2026`. */
export function shortDays({ from, to }: Days): string {
  const last = addDays(to, -1);
  const start = new Date(from);
  const text =
    from === monthStart(from) && to === addMonths(from, 1)
      ? MONTH_YEAR.format(start)
      : from === last
        ? shortDay(from)
        : from.slice(0, 7) === last.slice(0, 7)
          ? `${DAY.format(start)}–${shortDay(last)}`
          : `${from.slice(0, 4) === last.slice(0, 4) ? DAY_MONTH.format(start) : shortDay(from)} – ${shortDay(last)}`;
  return text.replaceAll("Sept", "Sep");
}
