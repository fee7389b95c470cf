import { z } from "zod";
import { UsageError } from "../../core/base/errors.ts";
import { unitMsOf } from "../../core/domain/coverage/coverage-columns.ts";
import type { Status } from "../../core/domain/coverage/coverage-grid.ts";
import { type ColumnState, columnStates, partsFor } from "../../core/domain/coverage/coverage-grid.ts";
import { shortDays } from "../../core/domain/months/month.ts";
import { FIGURE_STATUS } from "../../core/domain/proof/statuses.ts";
import { dayOf } from "../../core/domain/time/days.ts";
import { intersect, totalMs } from "../../core/domain/time/intervals.ts";
import { ceilToGrid, DAY_MS, floorToGrid, HOUR_MS } from "../../core/domain/time/stride.ts";
import type { Interval } from "../../core/domain/time/window.ts";
import { listSources } from "../../core/store/activity/overview.ts";
import type { Page } from "../../web/layout.ts";
import {
  address,
  count,
  dimensionTitle,
  fact,
  type Html,
  html,
  joined,
  name,
  notice,
  pill,
  plainName,
  sourceUnknown,
  table,
} from "../../web/parts.ts";
import {
  addressOf,
  checkedRange,
  namedSource,
  rangeText,
  TARGET,
  workspaceUnknown,
} from "../../web/query.ts";
import type { Context, Web } from "../../web/routes.ts";
import { type CellFacts, cellFacts } from "./cell-facts.store.ts";
import { failureList, proofList, responseList, taskList } from "./cell-lists.ts";
import { type CoverageCell, type SourceCoverage, sourceCoverage } from "./coverage-cells.store.ts";
import { described, signOf } from "./coverage-table.ts";
import { retryForm } from "./gap-list.ts";

const QUERY = z.object(TARGET);
type Query = z.output<typeof QUERY>;
const MOST_DAYS = 62;

export function addCell(web: Web): void {
  web.page("/cell", { query: QUERY, oneInstant: true }, show);
}

interface Shown {
  readonly coverage: SourceCoverage;
  readonly cells: readonly CoverageCell[];
  readonly range: Interval;
  readonly unit: string;
  readonly states: readonly ColumnState[];
  readonly facts: CellFacts;
}

async function show({ db, query, masked, isOperator, csrf, now }: Context<Query>): Promise<Page> {
  const { workspace: workspaceId, group_by: groupBy, stride = "day" } = query;
  const source = namedSource(await listSources(db), query.source)?.source ?? "default";
  if (workspaceId === undefined) throw incomplete("workspace");
  const range = rangeOf(query);
  const coverage = await sourceCoverage(db, {
    source,
    stride,
    workspaceId,
    ...(groupBy && { groupBy }),
    tracedIn: range,
  });
  if (coverage === undefined) throw sourceUnknown(source, []);
  const { cells } = coverage;
  const [first] = cells;
  if (first === undefined) throw workspaceUnknown(source, workspaceId);
  const isHours = stride === "hour" && (range.start % DAY_MS !== 0 || range.end % DAY_MS !== 0);
  const length = isHours ? "hour" : "day";
  const unitMs = unitMsOf(length);
  const whole = { start: floorToGrid(range.start, unitMs), end: ceilToGrid(range.end, unitMs) };
  const states = partsFor(cells, length, coverage.now).flatMap(({ parts }) =>
    columnStates([parts], [whole], unitMs),
  );
  const scopeIds = cells
    .flatMap(({ scopeId, hourScopeId, daysOfHours }) => [
      scopeId,
      ...(intersect(daysOfHours, [range]).length > 0 ? [hourScopeId] : []),
    ])
    .filter((id) => id !== null);
  const facts = await cellFacts(db, { source, workspaceId, scopeIds, range });
  const shown = { coverage, cells, range, unit: `${length}s`, states, facts };
  const refusal = refusalOf(coverage, first);
  const [from, to] = [dayOf(range.start), dayOf(ceilToGrid(range.end, DAY_MS))];
  const lacking = cells.filter((_, n) => GAPS.includes(states[n]?.status ?? ""));
  const isRetried = isOperator && refusal === undefined && lacking.length > 0;
  const groupings = lacking.map((one) => one.groupBy);
  const retry = isRetried
    ? html`<div class="retry">${retryForm({ source, stride, workspaceId, groupings, from, to }, { csrf: csrf(), now })}<span class="quiet">Loads only what is missing.</span></div>`
    : html``;
  const target = { source, stride, range, groupBy, workspaceId };
  const worst = states.map((state) => signOf(state, state.status ?? "not_available", false).kind);
  const kind = (["missing", "provisional", "final", "proved"] as const).find((one) => worst.includes(one));
  const links = [
    ...(refusal === undefined
      ? [["Reload everything", addressOf("/backfills/new", target, { reprocess: "all" })]]
      : []),
    [
      "Differences and restatements",
      address("/differences", { source, state: "all", from, to, group_by: groupBy, workspace: workspaceId }),
    ],
    ["All workspaces", addressOf("/coverage", { source, stride, range })],
    ["Month", addressOf("/coverage", { ...target, range: undefined }, { month: from.slice(0, 7) })],
  ] as const;
  return {
    title: `${isHours ? rangeText(range) : shortDays({ from, to })} · ${plainName(first.workspaceName ?? workspaceId)}`,
    ...(kind && { pill: pill(FIGURE_STATUS[kind]) }),
    body: html`${failureList(facts.failures, { masked, isRequested: refusal === undefined, retry })}
    ${refusal !== undefined && notice("warn", `No sync loads it: ${refusal}.`)}
    ${taskList(facts)}
    ${stateTable(shown)}
    <p>${joined(
      links.map(([label, link]) => html`<a href="${link}">${label}</a>`),
      " · ",
    )}</p>
    <details><summary>Where it comes from</summary>${about(shown, query)}
    ${responseList(facts.responses)}${proofList(facts.proofs)}</details>`,
  };
}

const GAPS: readonly string[] = ["failed", "missing", "unverified"];

function refusalOf({ isUnavailable, stride }: SourceCoverage, { access }: CoverageCell): string | undefined {
  if (access === "unlisted") return "the workspace left the listing";
  if (access === "not_configured") return "the workspace is not configured any more";
  return isUnavailable ? `the platform does not respond by ${stride} for this source` : undefined;
}

function rangeOf({ from, to, stride = "day" }: Query): Interval {
  if (from === undefined) throw incomplete("from");
  const range = checkedRange({ start: from, end: to ?? from + (stride === "day" ? DAY_MS : HOUR_MS) });
  if (range.end - range.start <= MOST_DAYS * DAY_MS) return range;
  throw new UsageError({
    code: "range_too_long",
    message: `The range ${rangeText(range)} is longer than ${MOST_DAYS} days.`,
    next: "Choose a shorter range, or look at this range on the page of coverage.",
  });
}

function incomplete(field: string): UsageError {
  return new UsageError({
    code: "query_invalid",
    message: `The address of this page has no ${field}.`,
    next: "Choose a workspace and days on the page of coverage.",
  });
}

function about({ coverage, cells }: Shown, { group_by: groupBy }: Query): Html {
  const { source, stride } = coverage;
  const { workspaceId, workspaceName, access } = cells[0] as CoverageCell;
  return html`<dl class="facts">
      ${fact("Source", name(source))}
      ${fact("Workspace", html`${name(workspaceName ?? workspaceId)} <code>${name(workspaceId)}</code>${access !== "read" && html` <strong>No sync loads it: it ${access === "unlisted" ? "left the listing" : "is not configured any more"}.</strong>`}`)}
      ${fact("Dimension", groupBy === undefined ? "all" : dimensionTitle(groupBy))}
      ${fact("Loaded by", stride)}
    </dl>`;
}

function stateTable(shown: Shown): Html {
  const { coverage, cells, states, range, unit } = shown;
  const { source, stride } = coverage;
  return table({
    caption: "State by dimension",
    heads: ["Dimension", "Status", "Traces stored"],
    rows: cells.map((cell, n) => {
      const { workspaceId, groupBy } = cell;
      const state = states[n] as ColumnState;
      const { status } = state;
      const link = addressOf("/cell", { source, stride, range, workspaceId, groupBy });
      return html`<tr><th scope="row"><a href="${link}">${dimensionTitle(groupBy)}</a></th>
        <td>${status === undefined ? "nothing expected" : stateShown(state, status, unit)}</td>
        <td>${tracesOf(cell, shown)}</td></tr>`;
    }),
  });
}

function stateShown(state: ColumnState, status: Status, unit: string): Html {
  const { kind, mark } = signOf(state, status, false);
  return html`<span class="status ${kind}" aria-hidden="true">${mark}</span> ${described(state, status, unit)}`;
}

function tracesOf(
  { groupBy, days, hours, daysOfHours }: CoverageCell,
  { coverage, range, facts }: Shown,
): Html {
  const length = range.end - range.start;
  const loadedMs = totalMs(intersect((hours ?? days).loaded, [range]));
  if (loadedMs === 0) return count(null, "not loaded");
  const hoursMs = totalMs(intersect(daysOfHours, [range]));
  // Some days are sums of hours and others are not. Only the page of a single day shows traces then.
  if (hoursMs > 0 && hoursMs < loadedMs) return html`<span class="quiet">choose one day to see them</span>`;
  const stride = hoursMs > 0 ? "hour" : coverage.stride;
  const found = facts.traces.find((one) => one.groupBy === groupBy && one.stride === stride);
  const note = [
    ...(loadedMs < length ? ["of what is loaded"] : []),
    ...(hoursMs > 0 ? ["the sum of the hours"] : []),
  ].join(", ");
  return html`${count(found?.traces ?? 0)}${note !== "" && html` <span class="quiet">${note}</span>`}`;
}
