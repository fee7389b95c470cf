import { lastMonths, monthsOf, unitMsOf, unitsOfRange } from "../../core/domain/coverage/coverage-columns.ts";
import {
  COUNTED,
  type ColumnState,
  cellParts,
  columnStates,
  withoutRunning,
} from "../../core/domain/coverage/coverage-grid.ts";
import { dayOf } from "../../core/domain/time/days.ts";
import { DAY_MS } from "../../core/domain/time/stride.ts";
import type { Interval } from "../../core/domain/time/window.ts";
import { type Html, html, table } from "../../web/parts.ts";
import { addressOf, rangeText, type Target } from "../../web/query.ts";
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

export function calendar({ coverage, cells, target }: Chosen, span: Interval): Html {
  const { stride, now } = coverage;
  const chosen = cellParts(shownOf(cells));
  const all = chosen.map(({ parts }) => withoutRunning(parts, stride, now));
  const days = unitsOfRange(span, DAY_MS);
  const states = columnStates(all, days, unitMsOf(stride));
  const unit = unitOf(stride, stride, all.length);
  const daysOf = ({ start, end }: Interval) =>
    Array.from({ length: 31 }, (_, n) => {
      const at = start + n * DAY_MS;
      const state = at < end ? states[(at - span.start) / DAY_MS] : undefined;
      const range = { start: at, end: at + DAY_MS };
      return day(state, { target, range, unit, differs: differsIn(chosen, range) });
    });
  const begins = days[states.findIndex(({ status }) => status !== undefined)]?.start ?? now;
  const rows = monthsOf(span)
    .filter(({ start, end }) => start < now && end > begins)
    .reverse()
    .map(
      (range) =>
        html`<tr><th scope="row"><a href="${addressOf("/coverage", { ...target, range })}">${dayOf(range.start).slice(0, 7)}</a></th>${daysOf(range)}</tr>`,
    );
  if (rows.length === 0) return html`<p class="quiet">No usage is expected in these months.</p>`;
  return html`${table({ caption: `${rangeText(span)} by day`, kind: "grid calendar", heads: ["Month", ...Array.from({ length: 31 }, (_, n) => String(n + 1))], rows })}`;
}

function day(
  state: ColumnState | undefined,
  { target, range, unit, differs }: { target: Target; range: Interval; unit: string; differs: boolean },
): Html {
  if (state?.status === undefined) return html`<td></td>`;
  const { count, status } = state;
  const hasGap = count.failed + count.missing + count.unverified > 0;
  const to = addressOf("/coverage", { ...target, range }, { gaps: hasGap ? "1" : undefined });
  const { kind, glyph, note } = signOf(state, status, differs);
  const title = `${dayOf(range.start)}: ${described(state, status, unit)}${note}`;
  return html`<td class="status ${kind}"><a href="${to}" title="${title}"><span aria-hidden="true">${glyph}</span></a></td>`;
}

export function lastMonthsOf(coverage: SourceCoverage): Interval {
  const last = lastMonths(coverage.now);
  const first = monthsOf(last).find(({ end }) => end > firstOf(coverage)) ?? last;
  return { ...last, start: first.start };
}

export function firstOf({ now, cells }: SourceCoverage): number {
  return cells.reduce(
    (first, { days }) => Math.min(first, ...COUNTED.map((name) => days[name][0]?.start ?? first)),
    now,
  );
}
