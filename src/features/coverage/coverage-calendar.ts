import { lastMonths, monthsOf, unitMsOf, unitsOfRange } from "../../core/domain/coverage/coverage-columns.ts";
import {
  type CellParts,
  COUNTED,
  cellParts,
  columnStates,
  hasGapIn,
  withoutRunning,
} from "../../core/domain/coverage/coverage-grid.ts";
import { shortDays } from "../../core/domain/months/month.ts";
import { dayOf } from "../../core/domain/time/days.ts";
import { DAY_MS } from "../../core/domain/time/stride.ts";
import type { Interval } from "../../core/domain/time/window.ts";
import { type Html, html } from "../../web/parts.ts";
import { addressOf, type Target } from "../../web/query.ts";
import type { CoverageCell, SourceCoverage } from "./coverage-cells.store.ts";
import { described, differsIn, signOf, unitOf } from "./coverage-table.ts";

interface Chosen {
  readonly coverage: SourceCoverage;
  readonly cells: readonly CoverageCell[];
  readonly target: Target;
}

/** Workspaces that left the listing or the configuration would stay gaps, so they are shown only if there are no others. */
function shownOf(cells: readonly CoverageCell[]): readonly CoverageCell[] {
  const loaded = cells.filter(({ access }) => access === "read");
  return loaded.length > 0 ? loaded : cells;
}

const WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const SUNDAY = 6;

/** A small calendar for each month: weekdays as rows, weeks as columns. */
export function calendar({ coverage, cells, target }: Chosen, span: Interval): Html {
  const { stride, now } = coverage;
  const chosen = cellParts(shownOf(cells)).map(({ cell, parts }) => ({
    cell,
    parts: withoutRunning(parts, stride, now),
  }));
  const days = unitsOfRange(span, DAY_MS);
  const all = chosen.map(({ parts }) => parts);
  const states = columnStates(all, days, unitMsOf(stride));
  const unit = unitOf(stride, stride, all.length);
  const cellOf = (start: number) => {
    const state = states[(start - span.start) / DAY_MS];
    if (state?.status === undefined) return html`<td></td>`;
    const range = { start, end: start + DAY_MS };
    const { kind, mark, note } = signOf(state, state.status, differsIn(chosen, range));
    const title = `${dayOf(start)}: ${described(state, state.status, unit)}${note}`;
    return html`<td class="status ${kind}"><a href="${linkOf(range, chosen, target)}" title="${title}"><span aria-hidden="true">${mark}</span></a></td>`;
  };
  const begins = days[states.findIndex(({ status }) => status !== undefined)]?.start ?? now;
  const months = monthsOf(span).filter(({ start, end }) => start < now && end > begins);
  if (months.length === 0) return html`<p class="quiet">No usage is expected in these months.</p>`;
  return html`<div class="months" role="group" aria-label="Calendar">${months.reverse().map((month) => {
    const first = month.start - weekdayOf(month.start) * DAY_MS;
    const weeks = Array.from(
      { length: Math.ceil((month.end - first) / (7 * DAY_MS)) },
      (_, n) => first + n * 7 * DAY_MS,
    );
    const to = addressOf(
      "/coverage",
      { ...target, range: undefined },
      { month: dayOf(month.start).slice(0, 7) },
    );
    return html`<table class="calendar"><caption><a href="${to}#table">${shortDays({ from: dayOf(month.start), to: dayOf(month.end) })}</a></caption>
      <tbody>${WEEKDAYS.map(
        (weekday, n) =>
          html`<tr><th scope="row"><span class="visually-hidden">${weekday}</span></th>${weeks.map((week) => {
            const at = week + n * DAY_MS;
            return at < month.start || at >= month.end ? html`<td></td>` : cellOf(at);
          })}</tr>`,
      )}</tbody></table>`;
  })}</div>`;
}

function weekdayOf(at: number): number {
  return (new Date(at).getUTCDay() + SUNDAY) % 7;
}

/** A day with a gap leads to its reason and to its retry: the first workspace that lacks something. */
function linkOf(range: Interval, chosen: readonly CellParts<CoverageCell>[], target: Target): string {
  const lacking = chosen.find(({ parts }) => hasGapIn(parts, range));
  if (lacking === undefined) return addressOf("/coverage", { ...target, range });
  return addressOf("/cell", { ...target, range, workspaceId: lacking.cell.workspaceId });
}

export function lastMonthsOf(coverage: SourceCoverage): Interval {
  const last = lastMonths(coverage.now);
  const first = monthsOf(last).find(({ end }) => end > firstOf(coverage)) ?? last;
  return { ...last, start: first.start };
}

function firstOf({ now, cells }: SourceCoverage): number {
  return cells.reduce(
    (first, { days }) => Math.min(first, ...COUNTED.map((name) => days[name][0]?.start ?? first)),
    now,
  );
}
