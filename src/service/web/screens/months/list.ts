import { type CalendarMonth, monthAt, monthBefore } from "../../../../domain/months/month.ts";
import { GROUPINGS } from "../../../../domain/usage/record.ts";
import { daysWithin } from "../../../../pipeline/months/look.ts";
import type { SourceWithWorkspaces } from "../../../../store/activity/overview.ts";
import type { Database } from "../../../../store/db/database.ts";
import { type ClosedMonth, closedMonths } from "../../../../store/months/closed-months.ts";
import { countAdjusted } from "../../../../store/months/month-adjustments.ts";
import { checkMonths } from "../../../../store/months/month-open-days.ts";
import { type Html, html } from "../../html.ts";
import { count, instant } from "../../parts/text.ts";
import { inShort } from "./check-list.ts";
import { address } from "./links.ts";

/** Months on a page. */
const ON_A_PAGE = 12;
/** The check of a month that is open reads each of its days x dimensions x workspaces that nothing proves: so many on a page, about. */
const MOST_DAYS = 40_000;
const DAYS_OF_A_MONTH = 30;

interface Row {
  readonly month: CalendarMonth;
  readonly what: Html;
  readonly since: Html | "";
}

/** The months of a source from `newest` back to its data start, the newest first. */
export async function monthList(
  db: Database,
  { source, newest, now }: { source: SourceWithWorkspaces; newest: CalendarMonth; now: number },
): Promise<Html> {
  const listed: CalendarMonth[] = [];
  for (
    let month = newest;
    month.end > source.dataStart && listed.length < ON_A_PAGE;
    month = monthBefore(month)
  ) {
    listed.push(month);
  }
  const [last] = listed.slice(-1);
  if (last === undefined)
    return html`<p>The data of ${source.source} starts on ${source.dataStart}, after this month.</p>`;
  const closes = await closedMonths(db, { sourceId: source.sourceId, from: last.start, to: newest.end });
  const closed = new Map(closes.map((one) => [one.month, one]));
  const isOpen = ({ name, end }: CalendarMonth) => !closed.has(name) && Date.parse(end) <= now;
  const months = fitting(listed, isOpen, source.workspaceIds.length);
  const oldest = months.at(-1) ?? last;
  const open = months.filter(isOpen);
  const ranges = open.map((month) => daysWithin(month, source.dataStart));
  const [checks, adjusted] = await Promise.all([
    ranges.length === 0
      ? []
      : checkMonths(db, { sourceId: source.sourceId, ranges, without: [], acceptDisagreements: false }),
    countAdjusted(
      db,
      closes.map(({ closeId }) => closeId),
    ),
  ]);
  const rows = months.map((month): Row => {
    const close = closed.get(month.name);
    if (close !== undefined) return { month, ...ofClosed(close, adjusted.get(close.closeId)) };
    const check = checks[open.indexOf(month)];
    if (check === undefined) return { month, what: html`<span class="quiet">under way</span>`, since: "" };
    return { month, what: ofOpen(check.open.length === 0, inShort(check.open)), since: "" };
  });
  const older = monthBefore(oldest);
  return html`<div class="scroll" role="region" tabindex="0" aria-label="Months">
    <table><caption>Months of ${source.source} since ${source.dataStart}, the newest first. Open points count days x dimensions x workspaces.</caption>
      <thead><tr><th scope="col">Month</th><th scope="col">Closed, or what keeps it open</th>
        <th scope="col">Changed since the close</th></tr></thead>
      <tbody>${rows.map(
        ({ month: { name }, what, since }) =>
          html`<tr><th scope="row"><a href="${address(`/months/${name}`, { source: source.source })}">${name}</a></th>
            <td>${what}</td><td>${
              since === ""
                ? ""
                : html`<a href="${address(`/months/${name}`, { source: source.source })}#adjustments">${since}</a>`
            }</td></tr>`,
      )}</tbody></table></div>
    ${older.end > source.dataStart ? html`<p><a href="${address("/months", { source: source.source, newest: older.name })}">Older months</a></p>` : ""}`;
}

/** The first of some months, with as many open ones as a page checks: at least one. Closed months need no check. */
export function fitting(
  months: readonly CalendarMonth[],
  isOpen: (month: CalendarMonth) => boolean,
  workspaces: number,
): CalendarMonth[] {
  const most = Math.max(1, Math.floor(MOST_DAYS / (DAYS_OF_A_MONTH * GROUPINGS.length * workspaces)));
  const end = months.filter(isOpen)[most];
  return months.slice(0, end === undefined ? months.length : months.indexOf(end));
}

function ofClosed(close: ClosedMonth, adjusted: { totals: number; netTraces: number } | undefined) {
  const { closedAt, traces, without } = close;
  const what = html`<span class="status ok"><span aria-hidden="true">■</span> closed</span> ${instant(closedAt)}${closer(close)}:
    ${count(traces)} traces${without.length === 0 ? "" : html`, without ${without.length} ${without.length === 1 ? "workspace" : "workspaces"}`}`;
  const { totals = 0, netTraces = 0 } = adjusted ?? {};
  const since = html`${count(totals)} ${totals === 1 ? "total" : "totals"}${totals === 0 ? "" : `, ${signed(netTraces)} traces`}`;
  return { what, since };
}

function ofOpen(isReady: boolean, inWords: string): Html {
  return isReady
    ? html`<span class="status provisional"><span aria-hidden="true">□</span> open</span>: nothing keeps it open, it can be closed`
    : html`<span class="status missing"><span aria-hidden="true">□</span> open</span>: ${inWords}`;
}

/** ` by ada`, as far as a record says so. */
export function closer({ by }: Pick<ClosedMonth, "by">): string {
  if (by === null) return "";
  const how = by.via === "page" ? "on a page" : "by a command";
  return by.name === null ? `, ${how}` : ` by ${by.name} (${how})`;
}

export function signed(traces: number): string {
  const text = Math.abs(traces).toLocaleString("en-US");
  if (traces === 0) return "±0";
  return traces > 0 ? `+${text}` : `−${text}`;
}

/** The month under way. */
export function newestMonth(now: number): CalendarMonth {
  return monthAt(now);
}
