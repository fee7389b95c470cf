import { z } from "zod";
import { counted } from "../../core/base/printable.ts";
import {
  type Columns,
  columnsOf,
  type GridStride,
  lastMonths,
  neighbour,
} from "../../core/domain/coverage/coverage-columns.ts";
import {
  type CellParts,
  cellParts,
  cellsIn,
  gapsOf,
  partsFor,
  withoutRunning,
} from "../../core/domain/coverage/coverage-grid.ts";
import { dayOf } from "../../core/domain/time/days.ts";
import { ceilToGrid, DAY_MS, floorToGrid } from "../../core/domain/time/stride.ts";
import type { Interval } from "../../core/domain/time/window.ts";
import { GROUPINGS } from "../../core/domain/usage/record.ts";
import { listSources } from "../../core/store/activity/overview.ts";
import type { Page } from "../../web/layout.ts";
import {
  ALL,
  choice,
  count,
  dayField,
  dimensionTitle,
  type Html,
  html,
  lastDayField,
  legend,
  name,
  notice,
  optional,
  plainName,
  prose,
  sourceField,
} from "../../web/parts.ts";
import {
  addressOf,
  checkedRange,
  namedSource,
  rangeText,
  TARGET,
  type Target,
  workspaceUnknown,
} from "../../web/query.ts";
import type { Context, Web } from "../../web/routes.ts";
import { calendar, firstOf, lastMonthsOf } from "./coverage-calendar.ts";
import { type CoverageCell, type SourceCoverage, sourceCoverage } from "./coverage-cells.store.ts";
import { coverageTable, type Rows, rowsOf } from "./coverage-table.ts";

const QUERY = z.object({
  ...TARGET,
  page: optional(z.coerce.number("it is not a number").int().min(1).max(100_000)),
  gaps: optional(z.literal("1")),
  open: z.preprocess(
    (value) => (value === undefined ? [] : [value].flat()),
    z.array(z.string().max(1000)).max(100),
  ),
});
type Query = z.output<typeof QUERY>;
type Chosen = Target & { readonly stride: GridStride };

export function addCoverage(web: Web): void {
  web.page("/coverage", { query: QUERY, oneInstant: true }, show);
}

async function show({ db, query, now }: Context<Query>): Promise<Page> {
  const title = "Coverage";
  const sources = await listSources(db);
  const source = namedSource(sources, query.source)?.source;
  if (source === undefined) return { title, body: nothingYet() };
  const stride = query.stride ?? "day";
  const isChosen = query.from !== undefined || query.to !== undefined;
  // Only a chosen range is short enough for columns of hours.
  const chosen = isChosen ? rangeOf(query, now) : undefined;
  const isHours = chosen !== undefined && columnsOf(chosen, stride).length === "hour";
  const coverage = await sourceCoverage(db, { source, stride, tracedIn: isHours ? chosen : undefined });
  if (coverage === undefined) return { title, body: nothingYet() };
  const target: Chosen = { source, stride, groupBy: query.group_by, workspaceId: query.workspace };
  const cells = coverage.cells.filter(
    ({ groupBy, workspaceId }) =>
      (target.groupBy ?? groupBy) === groupBy && (target.workspaceId ?? workspaceId) === workspaceId,
  );
  if (cells.length === 0 && target.workspaceId !== undefined)
    throw workspaceUnknown(source, target.workspaceId);
  const filters = filterForm(query, { coverage, target, sources: sources.map((one) => one.source) });
  if (cells.length === 0) return { title, body: html`${filters}${noWorkspace(source)}` };

  const range = chosen ?? lastMonthsOf(coverage);
  const { length, columns } = columnsOf(range, stride);
  const shownParts = partsFor(cells, length, coverage.now);
  const open = new Set(target.workspaceId === undefined ? query.open : [target.workspaceId]);
  const rows = rowsOf({
    length,
    columns,
    cells: shownParts,
    open,
    page: query.page ?? 1,
    onlyGaps: query.gaps === "1",
  });
  const isUnloaded = cells.every(({ days }) => days.loaded.length === 0);
  const workspaces = html`${coverageTable({ ...rows, target, length, columns, toggled: (id) => toggled(query, target, { id, open }) })}
    ${paging(query, target, rows)}`;
  const isCalendar = length === "month";
  const all = { coverage, cells, target };
  const span = { start: columns[0]?.start ?? range.start, end: columns.at(-1)?.end ?? range.end };
  return {
    title,
    body: html`${filters}
    ${isUnloaded && notice("info", html`<p>Nothing is loaded yet${target.groupBy || target.workspaceId ? " of what is chosen" : ""}. ${prose("The next sync loads it; `usage-etl status` says when that is.")}</p>`)}
    ${coverage.isUnavailable && notice("warn", `The platform does not respond by ${stride} for this source. It is asked again once a day.`)}
    ${isCalendar && html`<h2>Calendar</h2>${calendar(all, span)}${legend()}`}
    ${gaps(coverage, cellParts(cells), { target, shown: span })}
    ${isCalendar ? folded(rows, query, workspaces) : html`<h2 id="table">${rangeText(span)}</h2>${around(query, { coverage, target, span, length })}${workspaces}`}
    <p><a href="${addressOf("/backfills/new", { ...target, range: expectedOf(coverage, span) })}">Load this range</a></p>
    <h2>Legend</h2>
    ${!isCalendar && legend()}
    <script type="module" src="/assets/coverage.js"></script>`,
  };
}

function nothingYet(): Html {
  return notice(
    "info",
    html`<p>No source is loaded yet, so there is no coverage to show.</p>
    <p>${prose("Set USAGE_BASE_URL and USAGE_API_KEY, and run `usage-etl sync`. The service does so once it is set up.")}</p>`,
  );
}

function noWorkspace(source: string): Html {
  return notice(
    "info",
    html`<p>No workspace of source ${source} is known yet.</p>
    <p>${prose("The first sync finds them. `usage-etl doctor` says whether the platform can be reached.")}</p>`,
  );
}

/** With one end only: a month from the start, up to today, or the months before the end. */
function rangeOf({ from, to }: Query, now: number): Interval {
  const start = from ?? lastMonths((to as number) - 1).start;
  const today = Math.max(ceilToGrid(now, DAY_MS), start + DAY_MS);
  return checkedRange({ start, end: to ?? Math.min(start + 31 * DAY_MS, today) });
}

function filterForm(
  query: Query,
  { coverage, target, sources }: { coverage: SourceCoverage; target: Chosen; sources: readonly string[] },
): Html {
  const day = (at: number | undefined) => (at === undefined ? undefined : dayOf(at));
  return html`<form class="row" method="get" action="/coverage">
    ${sourceField(sources, target.source)}
    ${choice("By", "stride", ["day", "hour"], target.stride)}
    ${choice("Dimension", "group_by", [ALL, ...GROUPINGS.map((value) => ({ value, text: dimensionTitle(value) }))], target.groupBy ?? "")}
    ${workspaceChoice(coverage, target)}
    ${dayField("From", "from", day(query.from))}
    ${lastDayField(day(query.to))}
    <label><input type="checkbox" name="gaps" value="1" ${query.gaps === "1" && "checked"}> only with gaps</label>
    <button>Show</button>
  </form>`;
}

function workspaceChoice({ cells }: SourceCoverage, { workspaceId: chosen }: Chosen): Html {
  const names = new Map(cells.map((one) => [one.workspaceId, one.workspaceName ?? one.workspaceId]));
  const options = [...names].map(([value, text]) => ({ value, text: plainName(text) }));
  return choice("Workspace", "workspace", [ALL, ...options], chosen ?? "");
}

function around(
  query: Query,
  {
    coverage,
    target,
    span,
    length,
  }: { coverage: SourceCoverage; target: Chosen; span: Interval; length: Columns["length"] },
): Html {
  const link = (range: Interval | undefined, text: string) =>
    html`<a class="turn" href="${addressOf("/coverage", { ...target, range }, { gaps: query.gaps })}">${text}</a>`;
  const links = [
    link(undefined, "All months"),
    ...(span.start > firstOf(coverage) ? [link(neighbour(span, -1), `Earlier ${length}s`)] : []),
    ...(span.end < coverage.now ? [link(neighbour(span, 1), `Later ${length}s`)] : []),
  ];
  return html`<p class="around">${links.map((one) => html`${one} `)}</p>`;
}

function toggled(
  query: Query,
  target: Chosen,
  { id, open }: { id: string; open: ReadonlySet<string> },
): string {
  if (target.workspaceId !== undefined)
    return addressOf("/coverage", { ...given(query, target), workspaceId: undefined });
  const shown = open.has(id) ? [...open].filter((one) => one !== id) : [...open, id];
  return `${addressOf("/coverage", given(query, target), { gaps: query.gaps, page: query.page, open: shown })}#table`;
}

function paging(query: Query, target: Chosen, { page, pages }: Rows): Html {
  if (pages === 1) return html``;
  const link = (to: number, text: string) =>
    html`<a class="turn" href="${addressOf("/coverage", given(query, target), { gaps: query.gaps, page: to })}#table">${text}</a>`;
  return html`<nav class="paging" aria-label="Pages of workspaces"><p>${page > 1 && link(page - 1, "Previous workspaces")}
    Page ${page} of ${pages} ${page < pages && link(page + 1, "Next workspaces")}</p></nav>`;
}

const MOST_UNASKED = 10;

function folded({ workspaces }: Rows, { open, page, gaps }: Query, content: Html): Html {
  const isOpen = workspaces <= MOST_UNASKED || open.length > 0 || page !== undefined || gaps !== undefined;
  return html`<details id="table" ${isOpen && "open"}><summary><h2>Workspaces</h2></summary>${content}</details>`;
}

function given({ from, to }: Query, target: Chosen): Chosen {
  return from === undefined || to === undefined ? target : { ...target, range: { start: from, end: to } };
}

function expectedOf({ dataStart, now }: SourceCoverage, { start, end }: Interval): Interval {
  const from = Math.max(start, dataStart);
  return { start: from, end: Math.max(Math.min(end, Math.ceil(now / DAY_MS) * DAY_MS), from) };
}

type Cells = readonly CellParts<CoverageCell>[];

function gaps(
  coverage: SourceCoverage,
  chosen: Cells,
  { target, shown }: { target: Target; shown: Interval },
): Html {
  // A workspace that no sync loads would stay a gap, so it is left out.
  const cells = chosen
    .filter(({ cell }) => cell.access === "read")
    .map(({ cell, parts }) => ({ cell, parts: withoutRunning(parts, coverage.stride, coverage.now) }));
  const left = new Set(
    chosen.filter(({ cell }) => cell.access !== "read").map(({ cell }) => cell.workspaceId),
  ).size;
  const note =
    left === 0
      ? ""
      : html`<p class="quiet">Not looked at here: ${counted(left, "workspace")} that no sync loads: ${left === 1 ? "it" : "they"} left the listing or the configuration.</p>`;
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
      ${next !== undefined && next !== first && html`<li><strong>Next after what is shown:</strong> ${gap(next, cells, target)}</li>`}
    </ul>${note}`;
}

/** An address has no space for more ids. */
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
      : groupings.map((one) => dimensionTitle(one)).join(", ");
  const known = new Set(all.map(({ cell }) => cell.workspaceId)).size;
  const named = workspaces.length === known || workspaces.length > MOST_IDS ? [] : workspaces;
  const only = groupings.length === GROUPINGS.length ? [] : groupings;
  const days = { start: floorToGrid(range.start, DAY_MS), end: ceilToGrid(range.end, DAY_MS) };
  const load = addressOf(
    "/backfills/new",
    { source: target.source, stride: target.stride, range },
    { group_by: only, workspace: named },
  );
  const firstDay = { start: days.start, end: days.start + DAY_MS };
  const cell = cells[0]?.cell;
  const why = addressOf("/cell", {
    ...target,
    range: firstDay,
    workspaceId: cell?.workspaceId,
    groupBy: cell?.groupBy,
  });
  return html`<a href="${addressOf("/coverage", { ...target, range: days })}">${rangeText(range)}</a>, ${where}, by ${by}.
    <a href="${why}">Why?</a> <a href="${load}">Load it</a>`;
}
