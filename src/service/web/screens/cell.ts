import { z } from "zod";
import { monthsOf } from "../../../domain/coverage/coverage-columns.ts";
import { type ColumnState, columnStates, partsFor } from "../../../domain/coverage/coverage-grid.ts";
import { intersect, totalMs } from "../../../domain/time/intervals.ts";
import { DAY_MS, floorToGrid, HOUR_MS } from "../../../domain/time/stride.ts";
import type { Interval } from "../../../domain/time/window.ts";
import { UsageError } from "../../../errors.ts";
import { listSources } from "../../../store/activity/overview.ts";
import { type CellFacts, cellFacts } from "../../../store/coverage/cell-facts.ts";
import {
  type CoverageCell,
  type SourceCoverage,
  sourceCoverage,
} from "../../../store/coverage/coverage-cells.ts";
import { inSnapshot } from "../../../store/db/snapshot.ts";
import { addAskAgain, askAgainForm } from "../grid/ask-again.ts";
import {
  answerList,
  differenceList,
  failureList,
  proofList,
  restatementList,
  taskList,
} from "../grid/cell-lists.ts";
import { addressOf, checkedRange, chosenSource, TARGET, workspaceUnknown, written } from "../grid/query.ts";
import { fold } from "../grid/rows.ts";
import { DIMENSION, described, rangeText } from "../grid/words.ts";
import { type Html, html } from "../html.ts";
import { badge } from "../parts/status.ts";
import { count, name, twin } from "../parts/text.ts";
import type { Context, Page, Web } from "../routes.ts";

const QUERY = z.object(TARGET);
type Query = z.output<typeof QUERY>;
const MOST_DAYS = 62;

/** What is known of one part of the coverage: answers, proofs, differences, restatements, failures. */
export function addCell(web: Web): void {
  web.page("/cell", { query: QUERY }, (context) =>
    // As of one instant: a load between two statements would make what is shown contradict itself.
    inSnapshot(context.db, (db) => show({ ...context, db })),
  );
  addAskAgain(web);
}

interface Shown {
  readonly coverage: SourceCoverage;
  readonly cells: readonly CoverageCell[];
  readonly range: Interval;
  /** Days or hours, in words. */
  readonly unit: string;
  /** Of the whole range, by cell. */
  readonly states: readonly ColumnState[];
  readonly facts: CellFacts;
}

async function show(context: Context<Query, unknown>): Promise<Page> {
  const { db, query, who } = context;
  const { workspace: workspaceId, group_by: groupBy, stride = "day" } = query;
  const source = query.source ?? chosenSource(await listSources(db), undefined)?.source ?? "default";
  if (workspaceId === undefined) throw incomplete("workspace");
  const range = rangeOf(query);
  const coverage = await sourceCoverage(db, {
    source,
    stride,
    workspaceId,
    ...(groupBy && { groupBy }),
    tracedIn: range,
  });
  if (coverage === undefined) throw sourceUnknown(await listSources(db), source);
  const { cells } = coverage;
  const [first] = cells;
  if (first === undefined) throw workspaceUnknown(source, workspaceId);
  // A part of a day is shown in hours.
  const isHours = stride === "hour" && (range.start % DAY_MS !== 0 || range.end % DAY_MS !== 0);
  const length = isHours ? "hour" : "day";
  const columns = bucketsOf(range, isHours ? HOUR_MS : DAY_MS);
  const states = partsFor(cells, length, coverage.now).map(({ parts }) =>
    columnStates(parts, columns, length),
  );
  const scopeIds = cells
    .flatMap(({ scopeId, hourScopeId, daysOfHours }) => [
      scopeId,
      ...(intersect(daysOfHours, [range]).length > 0 ? [hourScopeId] : []),
    ])
    .filter((id) => id !== null);
  const facts = await cellFacts(db, { source, workspaceId, scopeIds, range });
  const shown = { coverage, cells, range, unit: `${length}s`, states: states.map(fold), facts };
  const refusal = refusalOf(coverage, first);
  return {
    title: `Coverage of ${rangeText(range)}`,
    body: html`${about(shown, query)}
    <h2>State</h2>${stateTable(shown)}
    <h2>Failures</h2>${failureList(facts.failures, { who, isAsked: refusal === undefined })}
    ${taskList(facts)}
    <h2>Ask again</h2>${askAgainForm(context, { target: { source, stride, range, groupBy, workspaceId }, refusal })}
    <h2>Answers</h2>${answerList(facts.answers)}
    <h2>Proof</h2>${proofList(facts.proofs)}
    <h2>Differences</h2>${differenceList(facts.differences, who)}
    <h2>Restatements</h2>${restatementList(facts.restatements, who)}`,
  };
}

/** Why no sync asks for it; undefined if one does. */
function refusalOf({ isUnavailable, stride }: SourceCoverage, { access }: CoverageCell): string | undefined {
  if (access === "unlisted") return "the workspace left the listing";
  if (access === "not_configured") return "the workspace is not configured any more";
  return isUnavailable ? `the platform does not answer by ${stride} for this source` : undefined;
}

function rangeOf({ from, to, stride = "day" }: Query): Interval {
  if (from === undefined) throw incomplete("from");
  const range = checkedRange({ start: from, end: to ?? from + (stride === "day" ? DAY_MS : HOUR_MS) });
  if (range.end - range.start <= MOST_DAYS * DAY_MS) return range;
  throw new UsageError({
    code: "range_too_long",
    message: `The range ${rangeText(range)} is longer than ${MOST_DAYS} days.`,
    next: "Choose a shorter one, or look at it on the page of coverage.",
  });
}

function bucketsOf({ start, end }: Interval, size: number): Interval[] {
  const first = floorToGrid(start, size);
  return Array.from({ length: Math.ceil((end - first) / size) }, (_, n) => ({
    start: first + n * size,
    end: first + (n + 1) * size,
  }));
}

function incomplete(field: string): UsageError {
  return new UsageError({
    code: "query_invalid",
    message: `The address names no ${field}, so it is no part of the coverage.`,
    next: "Choose a part on the page of coverage.",
  });
}

function sourceUnknown(sources: Parameters<typeof chosenSource>[0], source: string): unknown {
  try {
    return chosenSource(sources, source);
  } catch (error) {
    return error;
  }
}

function about({ coverage, cells, range }: Shown, { group_by: groupBy }: Query): Html {
  const { source, stride } = coverage;
  const { workspaceId, workspaceName, access } = cells[0] as CoverageCell;
  const target = { source, stride, workspaceId, groupBy };
  const month = monthsOf(range)[0];
  return html`<dl class="facts">
      <div><dt>Source</dt><dd>${name(source)}</dd></div>
      <div><dt>Workspace</dt><dd>${name(workspaceName ?? workspaceId)} <code>${name(workspaceId)}</code>${access === "read" ? "" : html` <strong>No sync loads it: it ${access === "unlisted" ? "left the listing" : "is not configured any more"}.</strong>`}</dd></div>
      <div><dt>Dimension</dt><dd>${groupBy === undefined ? "all" : DIMENSION[groupBy]}</dd></div>
      <div><dt>Loaded by</dt><dd>${stride}</dd></div>
    </dl>
    <p><a href="${addressOf("/coverage", { ...target, range: month })}">Coverage of its month</a></p>
    ${twin(`usage-etl coverage --from ${written(range.start)} --to ${written(range.end)} --days`)}`;
}

function stateTable(shown: Shown): Html {
  const { coverage, cells, states, range, unit } = shown;
  return html`<div class="scroll" role="region" tabindex="0" aria-label="State by dimension"><table>
    <caption>State by dimension</caption>
    <thead><tr><th scope="col">Dimension</th><th scope="col">Status</th><th scope="col">In words</th><th scope="col">Traces stored</th></tr></thead>
    <tbody>${cells.map((cell, n) => {
      const { count: counted, status } = states[n] as ColumnState;
      const { source, stride } = coverage;
      const link = addressOf("/cell", {
        source,
        stride,
        range,
        workspaceId: cell.workspaceId,
        groupBy: cell.groupBy,
      });
      return html`<tr><th scope="row"><a href="${link}">${DIMENSION[cell.groupBy]}</a></th>
        <td>${status === undefined ? "nothing expected" : badge(status)}</td>
        <td>${status === undefined ? "" : described(counted, status, unit)}</td>
        <td>${tracesOf(cell, shown)}</td></tr>`;
    })}</tbody>
  </table></div>`;
}

/** The stored traces of the loaded part of the range. */
function tracesOf(
  { groupBy, days, hours, daysOfHours }: CoverageCell,
  { coverage, range, facts }: Shown,
): Html {
  const length = range.end - range.start;
  const loadedMs = totalMs(intersect((hours ?? days).loaded, [range]));
  if (loadedMs === 0) return count(null, "not loaded");
  const hoursMs = totalMs(intersect(daysOfHours, [range]));
  // Some days are sums of hours and others are not: each day by itself shows its traces.
  if (hoursMs > 0 && hoursMs < loadedMs) return html`<span class="quiet">choose one day to see them</span>`;
  const stride = hoursMs > 0 ? "hour" : coverage.stride;
  const found = facts.traces.find((one) => one.groupBy === groupBy && one.stride === stride);
  const note = [
    ...(loadedMs < length ? ["of what is loaded"] : []),
    ...(hoursMs > 0 ? ["the sum of the hours"] : []),
  ].join(", ");
  return html`${count(found?.traces ?? 0)}${note === "" ? "" : html` <span class="quiet">${note}</span>`}`;
}
