import { z } from "zod";
import { counted } from "../../core/base/printable.ts";
import { columnsOf, type GridStride } from "../../core/domain/coverage/coverage-columns.ts";
import { partsFor } from "../../core/domain/coverage/coverage-grid.ts";
import { monthAt, monthNamed, shortDay } from "../../core/domain/months/month.ts";
import { FIGURE_STATUS } from "../../core/domain/proof/statuses.ts";
import { addDays, dayOf, intervalOf } from "../../core/domain/time/days.ts";
import { ceilToGrid, DAY_MS } from "../../core/domain/time/stride.ts";
import type { Interval } from "../../core/domain/time/window.ts";
import { GROUPINGS } from "../../core/domain/usage/record.ts";
import { listSources } from "../../core/store/activity/overview.ts";
import type { Page } from "../../web/layout.ts";
import {
  ALL,
  address,
  box,
  button,
  choice,
  columns,
  dayField,
  dimensionTitle,
  filterBar,
  type Html,
  hidden,
  html,
  lastDayField,
  notice,
  optional,
  pill,
  plainName,
} from "../../web/parts.ts";
import {
  addressOf,
  checkedRange,
  namedSource,
  TARGET,
  type Target,
  workspaceUnknown,
} from "../../web/query.ts";
import type { Context, Web } from "../../web/routes.ts";
import { calendar, lastMonthsOf } from "./coverage-calendar.ts";
import { type SourceCoverage, sourceCoverage } from "./coverage-cells.store.ts";
import { coverageTable, key, type Rows, rowsOf } from "./coverage-table.ts";
import { gapList } from "./gap-list.ts";
import { listGaps } from "./gaps.store.ts";
import { type SourceTrust, trustOfSources } from "./trust.store.ts";

const QUERY = z.object({
  ...TARGET,
  month: optional(
    z.string().refine((text) => monthNamed(text) !== undefined, "it is not a month such as 2026-10"),
  ),
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
  web.page("/coverage", { query: QUERY, oneInstant: true, header: { month: true } }, show);
}

async function show({ db, query, now, config, csrf, isOperator, masked }: Context<Query>): Promise<Page> {
  const title = "Data health";
  const source = namedSource(await listSources(db), query.source)?.source;
  const stride = query.stride ?? "day";
  const isChosen = query.from !== undefined || query.to !== undefined;
  const range = isChosen ? rangeOf(query, now) : monthOf(query, now);
  const { length, columns: shown } = columnsOf(range, stride);
  if (source === undefined) return { title, body: nothingYet(config.sources.length > 0) };
  const tracedIn = length === "hour" ? range : undefined;
  const coverage = await sourceCoverage(db, { source, stride, tracedIn });
  if (coverage === undefined) return { title, body: nothingYet(true) };
  const target: Chosen = { source, stride, groupBy: query.group_by, workspaceId: query.workspace };
  const cells = coverage.cells.filter(
    ({ groupBy, workspaceId }) =>
      (target.groupBy ?? groupBy) === groupBy && (target.workspaceId ?? workspaceId) === workspaceId,
  );
  if (cells.length === 0 && target.workspaceId !== undefined)
    throw workspaceUnknown(source, target.workspaceId);
  if (cells.length === 0) return { title, body: nothingYet(true) };
  const gaps = await listGaps(db, source);
  const trust = (await trustOfSources(db)).find((one) => one.source === source);
  const [newest, oldest] = [gaps[0], gaps.at(-1)];
  const load =
    newest &&
    oldest &&
    address("/backfills/new", {
      source,
      stride: "day",
      from: oldest.from,
      to: gaps
        .map(({ to }) => to)
        .sort()
        .at(-1),
    });
  const open = new Set(target.workspaceId === undefined ? query.open : [target.workspaceId]);
  const rows = rowsOf({
    length,
    columns: shown,
    cells: partsFor(cells, length, coverage.now),
    open,
    page: query.page ?? 1,
    onlyGaps: query.gaps === "1",
  });
  const span = { start: shown[0]?.start ?? range.start, end: shown.at(-1)?.end ?? range.end };
  const kept = { ...target, range: isChosen ? span : undefined };
  const more = { gaps: query.gaps, month: isChosen ? undefined : query.month };
  return {
    title,
    pill:
      gaps.length === 0
        ? pill({ ...FIGURE_STATUS.proved, word: "No gaps" })
        : pill({ ...FIGURE_STATUS.missing, word: counted(gaps.length, "gap") }),
    ...(trust && { about: provedText(trust) }),
    ...(load && isOperator && { actions: button(load, `Load gaps (${gaps.length})`, "primary") }),
    body: html`${coverage.isUnavailable && notice("warn", `The platform does not respond by ${stride} for this source. It is requested again once a day.`)}
      ${columns(
        gaps.length > 0 &&
          box({
            title: "Gaps",
            id: "gaps",
            body: gapList(gaps, { masked, now, csrf: isOperator ? csrf() : undefined }),
          }),
        box({
          title: "Calendar",
          links: key(),
          body: calendar({ coverage, cells, target }, lastMonthsOf(coverage)),
        }),
        box({
          title: "Workspaces",
          id: "table",
          body: html`${filters(query, coverage, target)}
            ${coverageTable({ ...rows, target, length, columns: shown, toggled: (id) => toggled(kept, more, { id, open, page: query.page }) })}
            ${paging(kept, more, rows)}`,
        }),
      )}
    <script type="module" src="/assets/coverage.js"></script>`,
  };
}

function nothingYet(isConfigured: boolean): Html {
  return notice(
    "info",
    isConfigured
      ? "Nothing loaded yet. The first sync finds the workspaces and loads them."
      : "No source is configured. Set USAGE_BASE_URL and USAGE_API_KEY.",
  );
}

function provedText({ dataStart, provedUntil, finalUntil }: SourceTrust): string {
  const last = (until: string) => shortDay(addDays(until, -1));
  const proved = provedUntil > dataStart ? `Proved to ${last(provedUntil)}` : "No day proved yet";
  if (finalUntil <= dataStart) return `No final day yet. Data starts ${shortDay(dataStart)}.`;
  return finalUntil > provedUntil ? `${proved} · final to ${last(finalUntil)}` : proved;
}

/** Up to today. */
function monthOf({ month }: Query, now: number): Interval {
  const { start: from, end: to } = monthNamed(month ?? "") ?? monthAt(now);
  const { start, end } = intervalOf({ from, to });
  return { start, end: Math.max(Math.min(end, ceilToGrid(now, DAY_MS)), start + DAY_MS) };
}

/** With one end only: a month from the start, up to today, or the days before the end. */
function rangeOf({ from, to }: Query, now: number): Interval {
  const start = from ?? (to as number) - 31 * DAY_MS;
  const today = Math.max(ceilToGrid(now, DAY_MS), start + DAY_MS);
  return checkedRange({ start, end: to ?? Math.min(start + 31 * DAY_MS, today) });
}

function filters(query: Query, { cells }: SourceCoverage, target: Chosen): Html {
  const day = (at: number | undefined) => (at === undefined ? undefined : dayOf(at));
  const names = new Map(cells.map((one) => [one.workspaceId, one.workspaceName ?? one.workspaceId]));
  const workspaces = [...names].map(([value, text]) => ({ value, text: plainName(text) }));
  const dimensions = GROUPINGS.map((value) => ({ value, text: dimensionTitle(value) }));
  return filterBar(
    "/coverage#table",
    html`${hidden({ source: target.source, month: query.month })}
      ${choice("Workspace", "workspace", [ALL, ...workspaces], target.workspaceId ?? "")}
      ${choice("Dimension", "group_by", [ALL, ...dimensions], target.groupBy ?? "")}
      <label><input type="checkbox" name="gaps" value="1" ${query.gaps === "1" && "checked"}> Only gaps</label>`,
    html`${choice("Interval", "stride", ["day", "hour"], target.stride)}
      ${dayField("From", "from", day(query.from))} ${lastDayField(day(query.to))}`,
  );
}

type More = Readonly<Record<"gaps" | "month", string | undefined>>;

function toggled(
  kept: Chosen,
  more: More,
  { id, open, page }: { id: string; open: ReadonlySet<string>; page: number | undefined },
): string {
  if (kept.workspaceId !== undefined)
    return addressOf("/coverage", { ...kept, workspaceId: undefined }, { month: more.month });
  const shown = open.has(id) ? [...open].filter((one) => one !== id) : [...open, id];
  return `${addressOf("/coverage", kept, { ...more, page, open: shown })}#table`;
}

function paging(kept: Chosen, more: More, { page, pages }: Rows): Html {
  if (pages === 1) return html``;
  const link = (to: number, text: string) =>
    html`<a class="turn" href="${addressOf("/coverage", kept, { ...more, page: to })}#table">${text}</a>`;
  return html`<nav class="paging" aria-label="Pages of workspaces"><p>${page > 1 && link(page - 1, "Previous workspaces")}
    Page ${page} of ${pages} ${page < pages && link(page + 1, "Next workspaces")}</p></nav>`;
}
