import { z } from "zod";
import { monthsOf, unitMsOf } from "../../../domain/coverage/coverage-columns.ts";
import { type ColumnState, columnStates, partsFor } from "../../../domain/coverage/coverage-grid.ts";
import { shortInstant } from "../../../domain/time/days.ts";
import { intersect, totalMs } from "../../../domain/time/intervals.ts";
import { ceilToGrid, DAY_MS, floorToGrid, HOUR_MS } from "../../../domain/time/stride.ts";
import type { Interval } from "../../../domain/time/window.ts";
import { GROUPINGS, type GroupBy } from "../../../domain/usage/record.ts";
import { UsageError } from "../../../errors.ts";
import { digestOf, planBackfill, previewedSource } from "../../../pipeline/backfill/plan-backfill.ts";
import { startShown } from "../../../pipeline/backfill/start-backfill.ts";
import { workspacesOf } from "../../../pipeline/backfill/wish.ts";
import { listSources } from "../../../store/activity/overview.ts";
import { type CellFacts, cellFacts } from "../../../store/coverage/cell-facts.ts";
import {
  type CoverageCell,
  type SourceCoverage,
  sourceCoverage,
} from "../../../store/coverage/coverage-cells.ts";
import { ASKED, type Asked, checkAsked } from "../backfills/new.ts";
import type { Page } from "../layout.ts";
import {
  address,
  count,
  dimensionTitle,
  type Html,
  html,
  name,
  postForm,
  STATUSES,
  type Status,
  table,
  UNPROVED,
} from "../parts.ts";
import type { Context, Web } from "../routes.ts";
import {
  answerList,
  differenceList,
  failureList,
  proofList,
  restatementList,
  taskList,
} from "./cell-lists.ts";
import {
  addressOf,
  checkedRange,
  rangeText,
  TARGET,
  type Target,
  unknownSource,
  workspaceUnknown,
} from "./query.ts";
import { described, HOURS_APART, signOf, unitOf } from "./table.ts";

const QUERY = z.object(TARGET);
type Query = z.output<typeof QUERY>;
const MOST_DAYS = 62;

export function addCell(web: Web): void {
  web.page("/cell", { query: QUERY, oneInstant: true }, show);
  addAskAgain(web);
}

interface Shown {
  readonly coverage: SourceCoverage;
  readonly cells: readonly CoverageCell[];
  readonly range: Interval;
  readonly unit: string;
  readonly states: readonly ColumnState[];
  readonly facts: CellFacts;
}

async function show(context: Context<Query, unknown>): Promise<Page> {
  const { db, query, who, config } = context;
  const { workspace: workspaceId, group_by: groupBy, stride = "day" } = query;
  const source = query.source ?? (await listSources(db))[0]?.source ?? "default";
  if (workspaceId === undefined) throw incomplete("workspace");
  const range = rangeOf(query);
  const coverage = await sourceCoverage(db, {
    source,
    stride,
    workspaceId,
    ...(groupBy && { groupBy }),
    tracedIn: range,
  });
  if (coverage === undefined) {
    const known = await listSources(db);
    throw unknownSource(
      source,
      known.map((one) => one.source),
    );
  }
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
  const byDay = stride === "hour" ? await daysBeside(db, { source, workspaceId, groupBy, range }) : undefined;
  const refusal = refusalOf(coverage, first);
  const isConfigured = config.sources.some(({ slug }) => slug === source);
  const hasButton = who.role === "operator" && refusal === undefined && isConfigured;
  return {
    title: `Coverage of ${rangeText(range)}`,
    body: html`${about(shown, query)}
    <h2>State</h2>${stateTable(shown)}${byDay}
    <h2>Failures</h2>${failureList(facts.failures, { who, isAsked: refusal === undefined, hasButton })}
    ${taskList(facts)}
    <h2>Ask again</h2>${askAgain(context, {
      target: { source, stride, range, groupBy, workspaceId },
      refusal,
      failed: GROUPINGS.filter((one) => facts.failures.some((failure) => failure.groupBy === one)),
    })}
    <h2>Differences</h2>${differenceList(facts.differences, who)}
    <h2>Restatements</h2>${restatementList(facts.restatements, who)}
    <h2>Where it comes from</h2>
    <details><summary>Answers of the platform, and what they were compared with</summary>
    <h3>Answers</h3>${answerList(facts.answers)}
    <h3>Proof</h3>${proofList(facts.proofs)}</details>`,
  };
}

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

function incomplete(field: string): UsageError {
  return new UsageError({
    code: "query_invalid",
    message: `The address names no ${field}, so it is no part of the coverage.`,
    next: "Choose a part on the page of coverage.",
  });
}

function about({ coverage, cells, range }: Shown, { group_by: groupBy }: Query): Html {
  const { source, stride } = coverage;
  const { workspaceId, workspaceName, access } = cells[0] as CoverageCell;
  const target = { source, stride, workspaceId, groupBy };
  const month = monthsOf(range)[0];
  return html`<dl class="facts">
      <div><dt>Source</dt><dd>${name(source)}</dd></div>
      <div><dt>Workspace</dt><dd>${name(workspaceName ?? workspaceId)} <code>${name(workspaceId)}</code>${access === "read" ? "" : html` <strong>No sync loads it: it ${access === "unlisted" ? "left the listing" : "is not configured any more"}.</strong>`}</dd></div>
      <div><dt>Dimension</dt><dd>${groupBy === undefined ? "all" : dimensionTitle(groupBy)}</dd></div>
      <div><dt>Loaded by</dt><dd>${stride}</dd></div>
    </dl>
    <p><a href="${addressOf("/coverage", { ...target, range: month })}">Coverage of its month</a></p>`;
}

/** What is claimed of the days that hours belong to: they are fetched and compared apart, so both may be said of one time. */
async function daysBeside(
  db: Context<unknown, unknown>["db"],
  { range, ...asked }: { source: string; workspaceId: string; groupBy: GroupBy | undefined; range: Interval },
): Promise<Html> {
  const { source, workspaceId, groupBy } = asked;
  const found = await sourceCoverage(db, { source, stride: "day", workspaceId, ...(groupBy && { groupBy }) });
  const days = { start: floorToGrid(range.start, DAY_MS), end: ceilToGrid(range.end, DAY_MS) };
  const parts = partsFor(found?.cells ?? [], "day", found?.now ?? 0).map((one) => one.parts);
  const [state] = columnStates(parts, [days], DAY_MS);
  if (state?.status === undefined) return html``;
  const to = addressOf("/cell", { ...asked, stride: "day", range: days });
  const text = described(state, state.status, unitOf("day", "day", parts.length));
  return html`<p>By day, ${rangeText(days)} is: <a href="${to}">${text}</a>. ${HOURS_APART}</p>`;
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
  const { kind, glyph } = signOf(state, status, false);
  const { about } = kind === "unproved" ? UNPROVED : STATUSES[status];
  return html`<span class="status ${kind}" title="${about}" aria-hidden="true">${glyph}</span> ${described(state, status, unit)}`;
}

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

const BODY = ASKED.extend({ shown_at: z.coerce.number().int().positive().max(8.64e15) });

/** Fetches a part of the coverage again, as a backfill. Sent twice from one page, it is started once. */
function addAskAgain(web: Web): void {
  web.action("/cell", { body: BODY }, async ({ body, config, store, actor, now, enqueue }) => {
    const { checked, problems } = checkAsked(config, body);
    if (checked === undefined) {
      throw new UsageError({
        code: "form_invalid",
        message: problems.join(" ") || "The form names no range.",
        next: "Go back to the cell and reload it.",
      });
    }
    const { wish, workspaceIds } = checked;
    const known = await previewedSource(checked.source, store.db);
    const source = { ...known, workspaceIds: workspacesOf(workspaceIds, known.workspaceIds) };
    const { tasks } = await planBackfill(source, wish, now);
    const shown = { digest: digestOf(source, wish, tasks), shownAt: body.shown_at };
    const started = await startShown(store, source, wish, { shown, by: actor, now });
    // Something was loaded there in this moment: the preview shows what is left to ask.
    if (started.outcome === "changed") {
      const { source: slug, stride, from, to, group_by, workspace, reprocess } = body;
      return {
        redirect: address("/backfills/new", {
          source: slug,
          stride,
          from,
          to,
          group_by,
          workspace,
          reprocess,
        }),
      };
    }
    await enqueue(source.slug);
    return { redirect: `/backfills/${started.backfillId}` };
  });
}

function askAgain(
  { config, who, csrf, now }: Pick<Context<unknown, unknown>, "config" | "who" | "csrf" | "now">,
  { target, refusal, failed }: { target: Target; refusal: string | undefined; failed: readonly GroupBy[] },
): Html {
  const { source, stride = "day", range, groupBy, workspaceId } = target;
  if (range === undefined || workspaceId === undefined) return html``;
  const all: Asked = {
    source,
    stride,
    from: shortInstant(range.start),
    to: shortInstant(range.end),
    reprocess: "all",
    group_by: groupBy === undefined ? [] : [groupBy],
    workspace: [workspaceId],
  };
  if (checkAsked(config, all).checked === undefined) {
    return html`<p class="quiet">The source is not configured here, so nothing of it can be asked for.</p>`;
  }
  if (refusal !== undefined) return html`<p class="quiet">Nothing of it can be asked for: ${refusal}.</p>`;
  const form = (label: string, asked: Asked): Html => {
    if (who.role !== "operator") return html`<p class="quiet">Operators can ask for it again.</p>`;
    return postForm("/cell", { csrf: csrf(), label, fields: { ...asked, shown_at: Math.round(now) } });
  };
  const wholly = (label: string) =>
    html`<p>Fetches all of it again, also what is final. A change of a final count is kept as a restatement.</p>${form(label, all)}`;
  if (failed.length === 0) return wholly("Ask again");
  const named = failed.map((one) => dimensionTitle(one)).join(", ");
  return html`<p>Fetches what failed by ${named}, and what else of it is not loaded or not final.</p>
    ${form("Ask again", { ...all, reprocess: "missing", group_by: [...failed] })}
    <details><summary>All of it, also what is final</summary>${wholly("Ask for all of it again")}</details>`;
}
