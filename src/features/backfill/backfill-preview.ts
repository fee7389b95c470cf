import type { SourceConfig } from "../../core/base/config.ts";
import { counted } from "../../core/base/printable.ts";
import type { RangeLine } from "../../core/domain/coverage/range-status.ts";
import {
  badge,
  count,
  dimensionTitle,
  fact,
  type Html,
  html,
  instant,
  joined,
  table,
} from "../../web/parts.ts";
import { rangeText } from "../../web/query.ts";
import type { BackfillRequest } from "./backfill-request.ts";
import { type BackfillBudget, type BackfillPreview, minutesOf } from "./plan-backfill.ts";
import { LEFT_OUT, requestsByDimension, windowsOf } from "./planned-windows.ts";

export interface CheckedRequest {
  readonly source: SourceConfig;
  readonly backfillRequest: BackfillRequest;
  /** Platform ids. Undefined: all workspaces. */
  readonly workspaceIds: readonly string[] | undefined;
}

interface Shown {
  readonly checked: CheckedRequest;
  readonly preview: BackfillPreview;
  readonly budget: BackfillBudget;
}

export function previewOf({ checked, preview, budget }: Shown): Html {
  const { tasks, facts, notSent, withoutTraces, inFlight } = preview;
  const windows = windowsOf(tasks);
  const sent = tasks.length - notSent - withoutTraces;
  const byDimension = requestsByDimension(tasks, checked.backfillRequest.groupings).map(
    ({ groupBy, requests }) => html`${dimensionTitle(groupBy)} ${count(requests)}`,
  );
  const where = new URLSearchParams({ source: checked.source.slug });
  return html`<dl class="facts">
      ${fact("Requests", html`${count(tasks.length)} in ${count(windows.length)} windows: ${joined(byDimension)}`)}
      ${withoutTraces !== 0 && fact("Not sent", html`up to ${count(withoutTraces)} of them: the workspace had no traces in that time so far, and responds by workspace come first`)}
      ${sent !== 0 && fact("Time", timeOf(sent, budget))}
      ${facts !== undefined && facts.routineTasks + facts.backfillTasks !== 0 && fact("Before it", html`${count(facts.routineTasks)} fetch tasks of syncs and ${count(facts.backfillTasks)} of other backfills wait already. Syncs go first.`)}
      ${inFlight !== 0 && fact("Under way", html`${count(inFlight)} of the requests are tasks of a sync or another backfill too. Nothing is fetched twice.`)}
      ${
        facts !== undefined &&
        html`${fact("Replaced", html`${facts.hasMoreRecords && "more than "}${count(facts.records)} stored records are fetched again`)}
        ${fact(
          "Closed months",
          facts.closedMonths.length === 0
            ? "none is touched"
            : html`${joined(facts.closedMonths.map((month) => html`<a href="/months/${month}?${where}">${month}</a>`))}. They stay as they were closed, and changes are adjustments.`,
        )}`
      }
    </dl>
    ${leftOut(preview.leftOut)}
    ${loaded(preview.loaded)}`;
}

export function timeOf(requests: number, budget: BackfillBudget): Html {
  const minutes = minutesOf(requests, budget);
  return html`about ${counted(minutes, "minute")} at the ${count(Math.floor(budget.leftPerMinute))} requests a minute that routine syncs leave of ${count(budget.perMinute)}`;
}

function leftOut(parts: BackfillPreview["leftOut"]): Html {
  if (parts.length === 0) return html``;
  return table({
    label: "Left out",
    caption: "Left out: daily figures, or hourly ones where hours are requested",
    heads: ["Why", "Range", "Figures"],
    rows: parts.map(
      ({ reason, first, end, buckets }) =>
        html`<tr><th scope="row">${LEFT_OUT[reason]}</th><td>${rangeText({ start: first, end })}</td><td>${count(buckets)}</td></tr>`,
    ),
  });
}

function loaded(lines: readonly RangeLine[]): Html {
  if (lines.length === 0) return html`<p>No usage is expected in that range.</p>`;
  return rangeTable(lines, "What is loaded now, in days or hours of workspaces");
}

export function rangeTable(lines: readonly RangeLine[], caption: string): Html {
  return table({
    caption,
    heads: ["Dimension", "Per", "Status", "Reason", "Figures", "Range", "Next attempt"],
    rows: lines.map(
      (
        line,
      ) => html`<tr><th scope="row">${dimensionTitle(line.groupBy)}</th><td>${line.stride}</td><td>${badge(line.status === "final" ? "ok" : line.status)}</td>
        <td>${line.code !== null && html`<code>${line.code}</code>`}</td><td>${count(line.buckets)}</td>
        <td>${rangeText({ start: line.first, end: line.end })}</td>
        <td>${line.retryAt !== null && instant(line.retryAt)}</td></tr>`,
    ),
  });
}
