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
