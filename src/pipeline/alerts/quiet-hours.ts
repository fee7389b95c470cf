import type { Route } from "../../domain/bill/alert-route.ts";
import { DateTime } from "../../luxon.ts";

/** Times of a week in which a route is told only what is critical, by the clock on a wall of its time zone. */

const DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const DAY = 24 * 60;
const WEEK = 7 * DAY;
const FORM = new RegExp(
  `^(?:(${DAYS.join("|")})(?:-(${DAYS.join("|")}))?)?(?:(?:^| )([01]\\d|2[0-3]):([0-5]\\d)-([01]\\d|2[0-3]|24):([0-5]\\d))?$`,
);

/** Minutes since Monday began. `to` is not included; of a Sunday it may lie in the next week. */
interface Span {
  readonly from: number;
  readonly to: number;
}

/** Of `22:00-07:00` (each day), `sat-sun` or `mon-fri 18:00-08:00`: a span for each day on which it begins. None: it is no such text. */
function spansOf(text: string): Span[] {
  const [, first, last = first, fromHour, fromMinute, toHour, toMinute] = FORM.exec(text) ?? [];
  if (first === undefined && fromHour === undefined) return [];
  const from = fromHour === undefined ? 0 : Number(fromHour) * 60 + Number(fromMinute);
  const end = toHour === undefined ? DAY : Number(toHour) * 60 + Number(toMinute);
  if (end === from || end > DAY) return [];
  const to = end > from ? end : end + DAY;
  const begin = first === undefined ? 0 : DAYS.indexOf(first);
  const days = first === undefined ? 7 : ((DAYS.indexOf(last as string) - begin + 7) % 7) + 1;
  return Array.from({ length: days }, (_, n) => {
    const day = ((begin + n) % 7) * DAY;
    return { from: day + from, to: day + to };
  });
}

function isIn(spans: readonly Span[], minute: number): boolean {
  return spans.some(({ from, to }) => (minute >= from && minute < to) || minute + WEEK < to);
}

export function isQuietHours(text: string): boolean {
  return spansOf(text).length > 0;
}

/** Whether a week has a minute outside of them. */
export function leavesTime(quietHours: readonly string[]): boolean {
  const spans = quietHours.flatMap(spansOf);
  return Array.from({ length: WEEK }, (_, minute) => minute).some((minute) => !isIn(spans, minute));
}

export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en-US", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** `now`: epoch milliseconds. */
export function isQuiet(
  { quietHours, timeZone }: Pick<Route, "quietHours" | "timeZone">,
  now: number,
): boolean {
  if (quietHours.length === 0) return false;
  const { weekday, hour, minute } = DateTime.fromMillis(now, { zone: timeZone });
  return isIn(quietHours.flatMap(spansOf), (weekday - 1) * DAY + hour * 60 + minute);
}
