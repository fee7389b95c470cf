import { z } from "zod";
import { type Columns, columnsOf, lastMonths, neighbour } from "../../../domain/coverage/coverage-columns.ts";
import { cellParts, type GridStride, partsFor } from "../../../domain/coverage/coverage-grid.ts";
import { DAY_MS } from "../../../domain/time/stride.ts";
import type { Interval } from "../../../domain/time/window.ts";
import { GROUPINGS } from "../../../domain/usage/record.ts";
import { listSources } from "../../../store/activity/overview.ts";
import { type SourceCoverage, sourceCoverage } from "../../../store/coverage/coverage-cells.ts";
import { inSnapshot } from "../../../store/db/snapshot.ts";
import { gaps, loadedBySync, strip } from "../grid/history.ts";
import {
  addressOf,
  checkedRange,
  chosenSource,
  optional,
  TARGET,
  type Target,
  workspaceUnknown,
  written,
} from "../grid/query.ts";
import { type Rows, rowsOf } from "../grid/rows.ts";
import { coverageTable } from "../grid/table.ts";
import { DIMENSION, marksLegend, plainName, rangeText } from "../grid/words.ts";
import { type Html, html } from "../html.ts";
import { choice, dayField } from "../parts/form.ts";
import { notice } from "../parts/notice.ts";
import { legend } from "../parts/status.ts";
import { prose, twin } from "../parts/text.ts";
import type { Context, Page, Web } from "../routes.ts";

const QUERY = z.object({
  ...TARGET,
  page: optional(z.coerce.number("it is not a number").int().min(1).max(100_000)),
  /** Only workspaces with a gap in what is shown. */
  gaps: optional(z.literal("1")),
  /** Workspaces whose dimensions are shown. */
  open: z.preprocess(
    (value) => (value === undefined ? [] : [value].flat()),
    z.array(z.string().max(1000)).max(100),
  ),
});
type Query = z.output<typeof QUERY>;
type Chosen = Target & { readonly stride: GridStride };

/** Coverage of months, days and hours, the strip of all history, and the next gap. */
export function addCoverage(web: Web): void {
  web.page("/coverage", { query: QUERY, mayBeOld: true }, (context) =>
    // As of one instant: a load between two statements would make what is shown contradict itself.
    inSnapshot(context.db, (db) => show({ ...context, db })),
  );
}

async function show({ db, query }: Context<Query, unknown>): Promise<Page> {
  const title = "Coverage";
  const sources = await listSources(db);
  const source = chosenSource(sources, query.source)?.source;
  if (source === undefined) return { title, body: nothingYet() };
  const stride = query.stride ?? "day";
  const isChosen = query.from !== undefined || query.to !== undefined;
  // Only a chosen range is short enough for columns of hours.
  const chosen = isChosen ? rangeOf(query, 0) : undefined;
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

  const range = chosen ?? rangeOf(query, coverage.now);
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
  const months = length === "month" ? shownParts : partsFor(cells, "month", coverage.now);
  const isUnloaded = cells.every(({ days }) => days.loaded.length === 0);
  const span = { start: columns[0]?.start ?? range.start, end: columns.at(-1)?.end ?? range.end };
  return {
    title,
    body: html`${filters}
    ${isUnloaded ? notice("info", html`<p>Nothing is loaded yet${target.groupBy || target.workspaceId ? " of what is chosen" : ""}. ${prose("The next sync loads it; `usage-etl status` says when that is.")}</p>`) : ""}
    ${coverage.isUnavailable ? notice("warn", `The platform does not answer by ${stride} for this source. It is asked again once a day.`) : ""}
    ${strip(coverage, loadedBySync(months), target)}
    ${gaps(coverage, cellParts(cells), { target, shown: span })}
    <h2 id="table">${rangeText(span)}</h2>
    ${around(query, { coverage, target, span, length })}
    ${coverageTable({ ...rows, target, length, columns, toggled: (id) => toggled(query, target, { id, open }) })}
    ${paging(query, target, rows)}
    ${backfillForm(target, coverage, span)}
    <h2>Legend</h2>
    ${legend()}${marksLegend()}
    <p class="quiet">A cell shows the worst of its ${stride === "day" ? "days" : "hours"}, with their number where not all are alike. The day under way counts in its month once it is loaded.</p>
    ${twin(`usage-etl coverage --from ${written(span.start)} --to ${written(span.end)} --days`)}
    <script type="module" src="/assets/coverage.js"></script>`,
  };
}

function nothingYet(): Html {
  return notice(
    "info",
    html`<p>No source is loaded yet, so there is no coverage to show.</p>
    <p>${prose("Set USAGE_BASE_URL and USAGE_API_KEY, and run `usage-etl sync`. The service does it by itself once it is set up.")}</p>`,
  );
}

function noWorkspace(source: string): Html {
  return notice(
    "info",
    html`<p>No workspace of source ${source} is known yet.</p>
    <p>${prose("The first sync finds them. `usage-etl doctor` says whether the platform can be reached.")}</p>`,
  );
}

/** Without a range the last 13 months. With one end only, a month from it or the months before it. */
function rangeOf({ from, to }: Query, now: number): Interval {
  if (from === undefined && to === undefined) return lastMonths(now);
  const start = from ?? lastMonths((to as number) - 1).start;
  return checkedRange({ start, end: to ?? start + 31 * DAY_MS });
}

function filterForm(
  query: Query,
  { coverage, target, sources }: { coverage: SourceCoverage; target: Chosen; sources: readonly string[] },
): Html {
  const workspaces = new Map(
    coverage.cells.map((one) => [one.workspaceId, one.workspaceName ?? one.workspaceId]),
  );
  const options = (values: readonly string[]) => values.map((value) => ({ value, text: value }));
  const day = (at: number | undefined) =>
    at === undefined ? undefined : new Date(at).toISOString().slice(0, 10);
  const all = { value: "", text: "all" };
  return html`<form class="row" method="get" action="/coverage">
    ${sources.length > 1 ? choice("Source", "source", options(sources), target.source) : html`<input type="hidden" name="source" value="${target.source}">`}
    ${choice("By", "stride", options(["day", "hour"]), target.stride)}
    ${choice("Dimension", "group_by", [all, ...GROUPINGS.map((value) => ({ value, text: DIMENSION[value] }))], target.groupBy ?? "")}
    ${choice("Workspace", "workspace", [all, ...[...workspaces].map(([value, text]) => ({ value, text: plainName(text) }))], target.workspaceId ?? "")}
    ${dayField("From", "from", day(query.from))}
    ${dayField("To, not included", "to", day(query.to))}
    <label><input type="checkbox" name="gaps" value="1" ${query.gaps === "1" ? "checked" : ""}> only with gaps</label>
    <button>Show</button>
  </form>`;
}

/** The way to earlier and later time, and up to months. */
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
    html`<a class="turn" href="${addressOf("/coverage", { ...target, range }, query.gaps === "1" ? { gaps: "1" } : {})}">${text}</a>`;
  const first = Math.min(
    coverage.dataStart,
    ...coverage.cells.flatMap(({ days }) => days.loaded[0]?.start ?? []),
  );
  const links = [
    ...(length === "month" ? [] : [link(undefined, "All months")]),
    ...(span.start > first ? [link(neighbour(span, -1), `Earlier ${length}s`)] : []),
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
  const rest = shown.map((one) => `&open=${encodeURIComponent(one)}`).join("");
  return `${addressOf("/coverage", given(query, target), more(query))}${rest}#table`;
}

function paging(query: Query, target: Chosen, { page, pages }: Rows): Html {
  if (pages === 1) return html``;
  const link = (to: number, text: string) =>
    html`<a class="turn" href="${addressOf("/coverage", given(query, target), { ...more(query), page: String(to) })}#table">${text}</a>`;
  return html`<nav class="paging" aria-label="Pages of workspaces"><p>${page > 1 ? link(page - 1, "Previous workspaces") : ""}
    Page ${page} of ${pages} ${page < pages ? link(page + 1, "Next workspaces") : ""}</p></nav>`;
}

/** The range as it was asked for. */
function given({ from, to }: Query, target: Chosen): Chosen {
  return from === undefined || to === undefined ? target : { ...target, range: { start: from, end: to } };
}

function more({ gaps, page }: Query): Record<string, string> {
  return { ...(gaps === "1" ? { gaps } : {}), ...(page === undefined ? {} : { page: String(page) }) };
}

/** Starts with what is shown. With JavaScript, what is selected in the table fills it. */
function backfillForm(target: Chosen, coverage: SourceCoverage, span: Interval): Html {
  const { source, stride, groupBy, workspaceId } = target;
  const expected = {
    start: Math.max(span.start, coverage.dataStart),
    end: Math.min(span.end, Math.ceil(coverage.now / DAY_MS) * DAY_MS),
  };
  const workspaces = new Map(
    coverage.cells.map((one) => [one.workspaceId, one.workspaceName ?? one.workspaceId]),
  );
  const field = (label: string, name: string, at: number) =>
    stride === "day"
      ? dayField(label, name, new Date(at).toISOString().slice(0, 10))
      : html`<label>${label} <input type="datetime-local" step="3600" name="${name}" value="${new Date(at).toISOString().slice(0, 16)}"></label>`;
  return html`<h2>Load a range</h2>
    <form class="row" method="get" action="/backfills/new" data-range>
      <input type="hidden" name="source" value="${source}"><input type="hidden" name="stride" value="${stride}">
      ${groupBy === undefined ? "" : html`<input type="hidden" name="group_by" value="${groupBy}">`}
      ${field("From", "from", expected.start)}
      ${field("To, not included", "to", Math.max(expected.end, expected.start))}
      ${choice("Workspace", "workspace", [{ value: "", text: "all" }, ...[...workspaces].map(([value, text]) => ({ value, text: plainName(text) }))], workspaceId ?? "")}
      <button>New backfill of this range</button>
    </form>
    <p class="quiet" data-range-note aria-live="polite"></p>`;
}
