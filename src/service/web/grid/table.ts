import type { ColumnLength } from "../../../domain/coverage/coverage-columns.ts";
import type { ColumnState, GridStride } from "../../../domain/coverage/coverage-grid.ts";
import type { Interval } from "../../../domain/time/window.ts";
import { type Html, html } from "../html.ts";
import { STATUSES } from "../parts/status.ts";
import { count, name } from "../parts/text.ts";
import { addressOf, type Target } from "./query.ts";
import type { Row, Rows } from "./rows.ts";
import { cellContent, DIMENSION, described, rangeText, unitOf } from "./words.ts";

interface Shown extends Rows {
  readonly target: Target & { readonly stride: GridStride };
  readonly length: ColumnLength;
  readonly columns: readonly Interval[];
  /** Address of the same table with the dimensions of a workspace shown, or not any more. */
  readonly toggled: (workspaceId: string) => string;
}

/** Columns of time x rows of workspaces. Each cell is a link: to the finer table, or to what is known of the cell. */
export function coverageTable(shown: Shown): Html {
  const { columns, length, rows, workspaces, first, last } = shown;
  const span = { start: columns[0]?.start ?? 0, end: columns.at(-1)?.end ?? 0 };
  return html`<div class="scroll" role="region" tabindex="0" aria-labelledby="grid-caption"><table class="grid ${length === "month" ? "" : "narrow"}" data-grid>
    <caption id="grid-caption">${rangeText(span)} by ${length}, ${workspaces === 0 ? "no workspace" : html`workspaces ${count(first)} to ${count(last)} of ${count(workspaces)}`}</caption>
    <thead><tr><th scope="col">Workspace</th>${columns.map(
      (column) => html`<th scope="col">${head(column, length)}</th>`,
    )}</tr></thead>
    <tbody>${rows.map((row) => line(row, shown))}</tbody>
  </table></div>`;
}

function head({ start }: Interval, length: ColumnLength): Html {
  const iso = new Date(start).toISOString();
  if (length === "month") return html`${iso.slice(0, 7)}`;
  if (length === "hour")
    return html`<span class="visually-hidden">${iso.slice(0, 10)} </span>${iso.slice(11, 16)}`;
  return html`<span class="visually-hidden">${iso.slice(0, 8)}</span>${iso.slice(8, 10)}`;
}

const ACCESS = {
  read: "",
  unlisted: "left the listing: no sync loads it",
  not_configured: "not configured any more: no sync loads it",
};

function line(row: Row, shown: Shown): Html {
  const { cell, groupBy, dimensions, isOpen } = row;
  const { workspaceId, workspaceName, access } = cell;
  const isPart = groupBy !== undefined && shown.target.groupBy === undefined;
  const label = name(workspaceName ?? workspaceId);
  const title = isPart
    ? html`<th scope="row" class="part"><span class="visually-hidden">${label} </span>by ${DIMENSION[groupBy]}</th>`
    : html`<th scope="row">${label}${access === "read" ? "" : html` <span class="quiet">${ACCESS[access]}</span>`}
        ${dimensions === 1 ? "" : html`<a class="fold" href="${shown.toggled(workspaceId)}">${isOpen ? "Hide" : "Show"} ${dimensions} dimensions<span class="visually-hidden"> of ${label}</span></a>`}</th>`;
  return html`<tr data-workspace="${workspaceId}">${title}${row.states.map((state, n) =>
    part(state, row, { shown, column: shown.columns[n] as Interval }),
  )}</tr>`;
}

function part(
  { count: counted, status }: ColumnState,
  { cell, groupBy, dimensions }: Row,
  { shown: { target, length }, column }: { shown: Shown; column: Interval },
): Html {
  if (status === undefined) {
    return html`<td class="none"><span aria-hidden="true">·</span><span class="visually-hidden">nothing expected</span></td>`;
  }
  const isFinest = length === "hour" || (length === "day" && target.stride === "day");
  const to = addressOf(isFinest ? "/cell" : "/coverage", {
    ...{ source: target.source, stride: target.stride, range: column, workspaceId: cell.workspaceId },
    groupBy: groupBy ?? target.groupBy,
  });
  const text = described(counted, status, unitOf(length, target.stride, dimensions));
  // A month or a workspace is more than its word says.
  const title = text === STATUSES[status].word ? "" : html`title="${text}"`;
  return html`<td class="${status}"><a class="cell-link" href="${to}" data-from="${column.start}" data-to="${column.end}" ${title}>${cellContent(counted, status, text)}</a></td>`;
}
