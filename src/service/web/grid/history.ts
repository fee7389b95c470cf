import { monthsOf } from "../../../domain/coverage/coverage-columns.ts";
import { cellsIn, gapsOf } from "../../../domain/coverage/coverage-gaps.ts";
import {
  type CellParts,
  countsOf,
  kindOf,
  statusOf,
  withoutRunning,
} from "../../../domain/coverage/coverage-grid.ts";
import { DAY_MS } from "../../../domain/time/stride.ts";
import type { Interval } from "../../../domain/time/window.ts";
import { GROUPINGS, type GroupBy } from "../../../domain/usage/record.ts";
import type { CoverageCell, SourceCoverage } from "../../../store/coverage/coverage-cells.ts";
import { type Html, html } from "../html.ts";
import { notice } from "../parts/notice.ts";
import { STATUSES } from "../parts/status.ts";
import { count, name } from "../parts/text.ts";
import { addressOf, type Target, written } from "./query.ts";
import { DIMENSION, described, rangeText } from "./words.ts";

type Cells = readonly CellParts<CoverageCell>[];

/** Only cells that a sync loads: what left the listing or the configuration would be a gap for ever. */
export function loadedBySync(cells: Cells): CellParts<CoverageCell>[] {
  return cells.filter(({ cell }) => cell.access === "read");
}

/** One part for each month of all history: the worst of everything that is chosen. */
export function strip(coverage: SourceCoverage, cells: Cells, target: Target): Html {
  const starts = cells.flatMap(({ cell }) => cell.days.loaded[0]?.start ?? []);
  const months = monthsOf({ start: Math.min(coverage.dataStart, ...starts), end: coverage.now });
  const counts = countsOf(
    cells.map(({ parts }) => parts),
    months,
    DAY_MS,
  );
  const unit = "days x workspaces x dimensions";
  return html`<h2 id="all-history">All history</h2>
    <ol class="strip" aria-labelledby="all-history">${months.map((month, n) => {
      const all = counts[n] as (typeof counts)[number];
      const kind = kindOf(all);
      if (kind === undefined) return "";
      const status = statusOf(kind, true);
      const text = `${written(month.start).slice(0, 7)}: ${described(all, status, unit)}`;
      const year = n === 0 || text.slice(5, 7) === "01" ? text.slice(0, 4) : "";
      return html`<li><span class="year" aria-hidden="true">${year}</span><a class="strip-link ${status}" href="${addressOf("/coverage", { ...target, range: month })}" title="${text}"><span class="status ${status}" aria-hidden="true">${STATUSES[status].glyph}</span><span class="visually-hidden">${text}</span></a></li>`;
    })}</ol>`;
}

/** The earliest gap of all history, and the next one after what is shown, each with the way to load it. */
export function gaps(
  coverage: SourceCoverage,
  chosen: Cells,
  { target, shown }: { target: Target; shown: Interval },
): Html {
  const cells = loadedBySync(chosen).map(({ cell, parts }) => ({
    cell,
    parts: withoutRunning(parts, coverage.stride, coverage.now),
  }));
  const left = new Set(
    chosen.filter(({ cell }) => cell.access !== "read").map(({ cell }) => cell.workspaceId),
  ).size;
  const note =
    left === 0
      ? ""
      : html`<p class="quiet">Not looked at here: ${count(left)} ${left === 1 ? "workspace that no sync loads: it" : "workspaces that no sync loads: they"} left the listing or the configuration.</p>`;
  if (cells.length === 0) return html`${note}`;
  const found = gapsOf(cells);
  const [first] = found;
  if (first === undefined) {
    return html`${notice("good", `No gap: in all history every ${coverage.stride} that has ended is loaded and readable.`)}${note}`;
  }
  const next = found.find(({ start }) => start >= shown.end);
  return html`<h2>Next gap</h2>
    <p>${count(found.length)} ${found.length === 1 ? "stretch" : "stretches"} of all history ${found.length === 1 ? "is" : "are"} missing, failed or unverified somewhere.</p>
    <ul class="gaps">
      <li><strong>Earliest:</strong> ${gap(first, cells, target)}</li>
      ${next === undefined || next === first ? "" : html`<li><strong>Next after what is shown:</strong> ${gap(next, cells, target)}</li>`}
    </ul>${note}`;
}

/** More ids would not fit into an address. */
const MOST_IDS = 20;

function gap(range: Interval, all: Cells, target: Target): Html {
  const cells = cellsIn(range, all);
  const workspaces = [...new Set(cells.map(({ cell }) => cell.workspaceId))];
  const groupings = GROUPINGS.filter((one) => cells.some(({ cell }) => cell.groupBy === one));
  const where =
    workspaces.length === 1
      ? name(cells[0]?.cell.workspaceName ?? (workspaces[0] as string))
      : html`${count(workspaces.length)} workspaces`;
  const by =
    groupings.length === GROUPINGS.length
      ? "every dimension"
      : groupings.map((one) => DIMENSION[one]).join(", ");
  const known = new Set(all.map(({ cell }) => cell.workspaceId)).size;
  const named = workspaces.length === known || workspaces.length > MOST_IDS ? [] : workspaces;
  const only = groupings.length === GROUPINGS.length ? [] : groupings;
  return html`<a href="${addressOf("/coverage", { ...target, range: around(range) })}">${rangeText(range)}</a>, ${where}, by ${by}.
    <a href="${backfillAddress({ ...target, range }, { groupings: only, workspaceIds: named })}">Load it</a>`;
}

/** Whole days, so that the table shows them. */
function around({ start, end }: Interval): Interval {
  return { start: Math.floor(start / DAY_MS) * DAY_MS, end: Math.ceil(end / DAY_MS) * DAY_MS };
}

/** The form of a new backfill, filled in. */
function backfillAddress(
  target: Target,
  { groupings, workspaceIds }: { groupings: readonly GroupBy[]; workspaceIds: readonly string[] },
): string {
  const { source, stride, range } = target;
  const query = [
    ...groupings.map((one) => ["group_by", one]),
    ...workspaceIds.map((one) => ["workspace", one]),
  ];
  const rest = query.map(([field, value]) => `&${field}=${encodeURIComponent(value as string)}`).join("");
  return `${addressOf("/backfills/new", { source, stride, range })}${rest}`;
}
