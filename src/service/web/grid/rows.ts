import type { ColumnLength } from "../../../domain/coverage/coverage-columns.ts";
import { hasGapIn } from "../../../domain/coverage/coverage-gaps.ts";
import {
  type CellParts,
  type ColumnState,
  type Count,
  columnStates,
  STATUSES,
  type Status,
  sum,
} from "../../../domain/coverage/coverage-grid.ts";
import type { Interval } from "../../../domain/time/window.ts";
import type { GroupBy } from "../../../domain/usage/record.ts";
import type { CoverageCell } from "../../../store/coverage/coverage-cells.ts";

/** A line of the table: a workspace with the worst of its dimensions, or one of its dimensions. */
export interface Row {
  readonly cell: CoverageCell;
  /** Undefined: all dimensions that are chosen. */
  readonly groupBy: GroupBy | undefined;
  readonly dimensions: number;
  readonly states: readonly ColumnState[];
  readonly isOpen: boolean;
}

/** Workspaces of a page. */
const PAGE = 25;

export interface RowsAsked {
  readonly length: ColumnLength;
  readonly columns: readonly Interval[];
  readonly cells: readonly CellParts<CoverageCell>[];
  /** From 1. */
  readonly page: number;
  readonly onlyGaps: boolean;
  /** Workspaces whose dimensions are shown. */
  readonly open: ReadonlySet<string>;
}

export interface Rows {
  readonly rows: readonly Row[];
  readonly page: number;
  readonly pages: number;
  /** All that fit the choice, and those on the page: from the first to the last of them. */
  readonly workspaces: number;
  readonly first: number;
  readonly last: number;
}

/** One page of the table. */
export function rowsOf(asked: RowsAsked): Rows {
  const { length, columns, open } = asked;
  const groups = [...Map.groupBy(asked.cells, ({ cell }) => cell.workspaceId).values()];
  const chosen = asked.onlyGaps ? groups.filter((group) => hasGap(group, columns)) : groups;
  const pages = Math.max(1, Math.ceil(chosen.length / PAGE));
  const page = Math.min(asked.page, pages);
  const shown = chosen.slice((page - 1) * PAGE, page * PAGE);
  const rows = shown.flatMap((group): Row[] => {
    const lines = group.map(({ cell, parts }): Row => {
      const states = columnStates(parts, columns, length);
      return { cell, groupBy: cell.groupBy, dimensions: 1, states, isOpen: false };
    });
    const [first] = lines;
    if (first === undefined || lines.length === 1) return lines;
    const isOpen = open.has(first.cell.workspaceId);
    const folded = columns.map((_, n) => fold(lines.map((line) => line.states[n] as ColumnState)));
    const row = { cell: first.cell, groupBy: undefined, dimensions: lines.length, states: folded, isOpen };
    return isOpen ? [row, ...lines] : [row];
  });
  const first = (page - 1) * PAGE + 1;
  return { rows, page, pages, workspaces: chosen.length, first, last: first + shown.length - 1 };
}

function hasGap(group: readonly CellParts<CoverageCell>[], columns: readonly Interval[]): boolean {
  const [first, last] = [columns[0], columns.at(-1)];
  if (first === undefined || last === undefined) return false;
  return group.some(({ parts }) => hasGapIn(parts, { start: first.start, end: last.end }));
}

/** Several parts as one: the worst of them, and `ok` if all are final and any has traces. */
export function fold(states: readonly ColumnState[]): ColumnState {
  const has = (status: Status) => states.some((one) => one.status === status);
  const worst = STATUSES.find((status) => (status === "empty" ? has("empty") && !has("ok") : has(status)));
  const count: Count = sum(states.map((one) => one.count));
  return { count, status: worst };
}
