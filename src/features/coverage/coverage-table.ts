import { type ColumnLength, type GridStride, unitMsOf } from "../../core/domain/coverage/coverage-columns.ts";
import {
  type CellParts,
  type ColumnState,
  columnStates,
  hasGapIn,
  isUnproved,
  kindOf,
  type Status,
  statusOf,
  unitsOf,
} from "../../core/domain/coverage/coverage-grid.ts";
import { FIGURE_STATUS, type FigureStatus } from "../../core/domain/proof/statuses.ts";
import type { Interval } from "../../core/domain/time/window.ts";
import type { GroupBy } from "../../core/domain/usage/record.ts";
import { count, dimensionTitle, type Html, html, name, pill } from "../../web/parts.ts";
import { addressOf, rangeText, type Target } from "../../web/query.ts";
import type { CoverageCell } from "./coverage-cells.store.ts";

interface Shown extends Rows {
  readonly target: Target & { readonly stride: GridStride };
  readonly length: ColumnLength;
  readonly columns: readonly Interval[];
  readonly toggled: (workspaceId: string) => string;
}

export function coverageTable(shown: Shown): Html {
  const { columns, length, rows, workspaces, first, last } = shown;
  const span = { start: columns[0]?.start ?? 0, end: columns.at(-1)?.end ?? 0 };
  return html`<div class="scroll" role="region" tabindex="0" aria-labelledby="grid-caption"><table class="grid ${length !== "month" && "narrow"}" data-grid>
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
  not_configured: "no longer configured: no sync loads it",
};

function line(row: Row, shown: Shown): Html {
  const { cell, groupBy, dimensions, isOpen } = row;
  const { workspaceId, workspaceName, access } = cell;
  const isPart = groupBy !== undefined && shown.target.groupBy === undefined;
  const label = name(workspaceName ?? workspaceId);
  const title = isPart
    ? html`<th scope="row" class="part"><span class="visually-hidden">${label} </span>by ${dimensionTitle(groupBy)}</th>`
    : html`<th scope="row">${label}${access !== "read" && html` <span class="quiet">${ACCESS[access]}</span>`}
        ${dimensions !== 1 && html`<a class="fold" href="${shown.toggled(workspaceId)}">${isOpen ? "Hide" : "Show"} ${dimensions} dimensions<span class="visually-hidden"> of ${label}</span></a>`}</th>`;
  return html`<tr data-workspace="${workspaceId}">${title}${row.states.map((state, n) =>
    part(state, row, { shown, column: shown.columns[n] as Interval }),
  )}</tr>`;
}

function part(
  state: ColumnState,
  { cell, groupBy, dimensions, differing }: Row,
  { shown: { target, length }, column }: { shown: Shown; column: Interval },
): Html {
  const { count: counted, status } = state;
  if (status === undefined) {
    return html`<td class="none"><span aria-hidden="true">·</span><span class="visually-hidden">nothing expected</span></td>`;
  }
  const isFinest = length === "hour" || (length === "day" && target.stride === "day");
  const to = addressOf(isFinest ? "/cell" : "/coverage", {
    source: target.source,
    stride: target.stride,
    range: column,
    workspaceId: cell.workspaceId,
    groupBy: groupBy ?? target.groupBy,
  });
  const sign = signOf(state, status, differing.includes(column));
  const text = `${described(state, status, unitOf(length, target.stride, dimensions))}${sign.note}`;
  return html`<td class="${sign.kind}"><a class="cell-link" href="${to}" title="${text}"><span aria-hidden="true">${sign.mark}${shareOf(counted, sign)}</span><span class="visually-hidden">${text}</span></a></td>`;
}

interface Row {
  readonly cell: CoverageCell;
  /** Undefined: the row is for all chosen dimensions. */
  readonly groupBy: GroupBy | undefined;
  readonly dimensions: number;
  readonly states: readonly ColumnState[];
  readonly differing: readonly Interval[];
  readonly isOpen: boolean;
}

const PAGE = 25;

interface RequestedRows {
  readonly length: ColumnLength;
  readonly columns: readonly Interval[];
  readonly cells: readonly CellParts<CoverageCell>[];
  readonly page: number;
  readonly onlyGaps: boolean;
  readonly open: ReadonlySet<string>;
}

export interface Rows {
  readonly rows: readonly Row[];
  readonly page: number;
  readonly pages: number;
  readonly workspaces: number;
  readonly first: number;
  readonly last: number;
}

export function rowsOf(requested: RequestedRows): Rows {
  const { length, columns, open } = requested;
  const groups = [...Map.groupBy(requested.cells, ({ cell }) => cell.workspaceId).values()];
  const chosen = requested.onlyGaps ? groups.filter((group) => hasGap(group, columns)) : groups;
  const pages = Math.max(1, Math.ceil(chosen.length / PAGE));
  const page = Math.min(requested.page, pages);
  const shown = chosen.slice((page - 1) * PAGE, page * PAGE);
  const rows = shown.flatMap((group): Row[] => {
    const row = (some: typeof group, groupBy: GroupBy | undefined, isOpen = false): Row => {
      const all = some.map(({ parts }) => parts);
      const states = columnStates(all, columns, unitMsOf(length));
      return {
        cell: (some[0] as (typeof some)[number]).cell,
        groupBy,
        dimensions: some.length,
        states,
        differing: columns.filter((column) => differsIn(some, column)),
        isOpen,
      };
    };
    const lines = () => group.map((one) => row([one], one.cell.groupBy));
    if (group.length === 1) return lines();
    const isOpen = open.has(group[0]?.cell.workspaceId ?? "");
    return [row(group, undefined, isOpen), ...(isOpen ? lines() : [])];
  });
  const first = (page - 1) * PAGE + 1;
  return { rows, page, pages, workspaces: chosen.length, first, last: first + shown.length - 1 };
}

export function differsIn(some: readonly { readonly cell: CoverageCell }[], column: Interval): boolean {
  return some.some(({ cell }) =>
    cell.differs.some(({ start, end }) => start < column.end && end > column.start),
  );
}

function hasGap(group: readonly CellParts<CoverageCell>[], columns: readonly Interval[]): boolean {
  const [first, last] = [columns[0], columns.at(-1)];
  if (first === undefined || last === undefined) return false;
  return group.some(({ parts }) => hasGapIn(parts, { start: first.start, end: last.end }));
}

interface Sign {
  /** The class of the cell. */
  readonly kind: FigureStatus | "not_available";
  readonly mark: string;
  readonly note: string;
}

/** The key of the colours: five words. */
export function key(): Html {
  return html`<ul class="legend">${Object.values(FIGURE_STATUS).map((one) => html`<li>${pill(one)}</li>`)}</ul>`;
}

/** A day that differs from the export, or was not compared, must not look proved. */
export function signOf(state: ColumnState, status: Status, differs: boolean): Sign {
  const note = differs ? ", differs from the export" : "";
  if (status === "not_available") return { kind: status, mark: "∅", note };
  const kind = kindOfSign(state, status, differs);
  return { kind, mark: FIGURE_STATUS[kind].mark, note };
}

function kindOfSign(state: ColumnState, status: Status, differs: boolean): FigureStatus {
  if (status === "failed" || status === "missing" || status === "unverified") return "missing";
  if (differs) return "differs";
  if (status === "provisional") return status;
  return isUnproved(state) ? "final" : "proved";
}

/** How many figures of the cell have the worst status, unless all do. */
function shareOf(count: ColumnState["count"], { kind }: Sign): string {
  const worst = kindOf(count);
  const affected = worst === undefined ? 0 : count[worst];
  return affected === unitsOf(count) || kind === "differs" || kind === "final" ? "" : ` ${affected}`;
}

const NOT_PROVED = "not proved";

export function described(state: ColumnState, status: Status, unit: string): string {
  const { count, proved } = state;
  const units = unitsOf(count);
  if (units === 0) return "nothing expected";
  const kinds = (["not_available", "failed", "missing", "unverified", "provisional", "final"] as const)
    .filter((kind) => count[kind] > 0)
    .map((kind) => {
      const shown = statusOf(kind, status !== "empty");
      const word = shown === "ok" ? "final" : shown.replace("_", " ");
      return count[kind] === units ? word : `${word} ${count[kind]} of ${units} ${unit}`;
    });
  if (isUnproved(state)) {
    const some = proved === 0 ? NOT_PROVED : `${proved} of ${units} ${unit} proved`;
    return [...kinds, some].join(", ");
  }
  const proofs = [
    ...(count.reconciled > 0 ? [proof("reconciled", count.reconciled, units)] : []),
    ...(count.matched > 0 ? [proof("matched by totals", count.matched, units)] : []),
  ];
  return [...kinds, ...proofs].join(", ");
}

function proof(word: string, proved: number, units: number): string {
  return proved >= units ? word : `${word} ${proved} of ${units}`;
}

export function unitOf(length: ColumnLength, stride: GridStride, dimensions: number): string {
  const isHour = length === "hour" && stride === "hour";
  if (dimensions > 1) return isHour ? "hourly figures" : "daily figures";
  return isHour ? "hours" : "days";
}
