import { addDays, addMonths, type Days, monthStart } from "../time/days.ts";

/** A calendar month, UTC. */
export interface CalendarMonth {
  readonly name: string;
  /** Its first day and the first day of the next month, ISO. */
  readonly start: string;
  readonly end: string;
}

export function daysOfMonth({ start, end }: Pick<CalendarMonth, "start" | "end">): Days {
  return { from: start, to: end };
}

/** Creating the format takes longer than using it a hundred times. */
const TITLE = new Intl.DateTimeFormat("en-US", { month: "long", year: "numeric", timeZone: "UTC" });

export function monthTitle({ start }: Pick<CalendarMonth, "start">): string {
  return TITLE.format(new Date(start));
}

/** Undefined if the text is no month. */
export function monthNamed(text: string): CalendarMonth | undefined {
  if (!/^\d{4}-(0[1-9]|1[0-2])$/.test(text)) return undefined;
  const start = `${text}-01`;
  return { name: text, start, end: addMonths(start, 1) };
}

/** The month in which an instant (epoch milliseconds) lies. */
export function monthAt(instant: number): CalendarMonth {
  return monthNamed(new Date(instant).toISOString().slice(0, 7)) as CalendarMonth;
}

export function monthBefore({ start }: CalendarMonth): CalendarMonth {
  return monthAt(Date.parse(start) - 1);
}

/** Names whole months by their names, and other ranges by their first and last day. */
export function daysText({ from, to }: Days): string {
  const last = addDays(to, -1);
  if (from !== monthStart(from) || to !== monthStart(to)) return from === last ? from : `${from} to ${last}`;
  const [first, end] = [from, last].map((day) => monthTitle({ start: day }));
  return first === end ? `${first}` : `${first} to ${end}`;
}
