import type { SourceConfig } from "../../core/base/config.ts";
import { counted } from "../../core/base/printable.ts";
import type { RangeLine } from "../../core/domain/coverage/range-status.ts";
import { FIGURE_STATUS, type Status } from "../../core/domain/proof/statuses.ts";
import {
  capital,
  count,
  dimensionTitle,
  fact,
  type Html,
  html,
  instant,
  joined,
  pill,
  table,
} from "../../web/parts.ts";
import { rangeText } from "../../web/query.ts";
import type { BackfillRequest } from "./backfill-request.ts";
import { type BackfillBudget, type BackfillPreview, minutesOf } from "./plan-backfill.ts";
import { LEFT_OUT, requestsByDimension } from "./planned-windows.ts";

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
  const sent = tasks.length - notSent - withoutTraces;
  const byDimension = requestsByDimension(tasks, checked.backfillRequest.groupings).map(
    ({ groupBy, requests }) => html`${dimensionTitle(groupBy)} ${count(requests)}`,
  );
  const where = new URLSearchParams({ source: checked.source.slug });
  return html`<dl class="facts">
      ${fact("Requests", html`${count(tasks.length)} (${joined(byDimension)})`)}
      ${withoutTraces !== 0 && fact("Not sent", html`up to ${count(withoutTraces)}: no traces by workspace in that time`)}
      ${sent !== 0 && fact("Time", timeOf(sent, budget))}
      ${facts !== undefined && facts.routineTasks + facts.backfillTasks !== 0 && fact("Waiting before it", html`${count(facts.routineTasks)} requests of syncs, ${count(facts.backfillTasks)} of other loads`)}
      ${inFlight !== 0 && fact("Already requested", html`${count(inFlight)} by a sync or another load`)}
      ${
        facts !== undefined &&
        html`${fact("Replaced", html`${facts.hasMoreRecords && "more than "}${count(facts.records)} stored records`)}
        ${fact(
          "Closed months",
          facts.closedMonths.length === 0
            ? "none"
            : html`${joined(facts.closedMonths.map((month) => html`<a href="/months/${month}?${where}">${month}</a>`))}. They stay closed; changes become adjustments.`,
        )}`
      }
    </dl>
    ${leftOut(preview.leftOut)}
    ${loaded(preview.loaded)}`;
}

export function timeOf(requests: number, budget: BackfillBudget): Html {
  return html`About ${counted(minutesOf(requests, budget), "minute")}`;
}

function leftOut(parts: BackfillPreview["leftOut"]): Html {
  if (parts.length === 0) return html``;
  return table({
    caption: "Skipped",
    heads: ["Reason", "Range", "Figures"],
    rows: parts.map(
      ({ reason, first, end, buckets }) =>
        html`<tr><th scope="row">${LEFT_OUT[reason]}</th><td>${rangeText({ start: first, end })}</td><td>${count(buckets)}</td></tr>`,
    ),
  });
}

function loaded(lines: readonly RangeLine[]): Html {
  if (lines.length === 0) return html`<p>No usage is expected in that range.</p>`;
  return rangeTable(lines, "Loaded now");
}

function statusOf({ status }: RangeLine): Status {
  if (status === "final" || status === "provisional") return FIGURE_STATUS[status];
  const word = status === "missing" ? FIGURE_STATUS.missing.word : capital(status.replace("_", " "));
  return { ...FIGURE_STATUS.missing, word };
}

export function rangeTable(lines: readonly RangeLine[], caption: string): Html {
  return table({
    caption,
    heads: ["Dimension", "Interval", "Status", "Reason", "Figures", "Range", "Next retry"],
    rows: lines.map(
      (
        line,
      ) => html`<tr><th scope="row">${dimensionTitle(line.groupBy)}</th><td>${line.stride}</td><td>${pill(statusOf(line))}</td>
        <td>${line.code !== null && html`<code>${line.code}</code>`}</td><td>${count(line.buckets)}</td>
        <td>${rangeText({ start: line.first, end: line.end })}</td>
        <td>${line.retryAt !== null && instant(line.retryAt)}</td></tr>`,
    ),
  });
}
