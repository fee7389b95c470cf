import { BUCKET_COLUMNS, type ExportRow } from "../../domain/usage/export.ts";
import { type GroupBy, NO_ID } from "../../domain/usage/record.ts";
import { type AnswerFault, foreignFault, recordFault } from "./answer-fault.ts";
import { DIMENSION, type GroupingWitness } from "./grouping.ts";
import { describeValue, fromWireId, fromWireName, fromWireTime } from "./wire-values.ts";

const { start: START, end: END } = BUCKET_COLUMNS;
const TRACES = "Traces";

/**
 * A reader of rows, by the names in the header; other columns are ignored. Throws `AnswerFault` (`answer_invalid`) for a header
 * without a column of this dimension.
 */
export function csvRowReader(header: readonly string[], groupBy: GroupBy, witness: GroupingWitness) {
  const { idColumn, nameColumn } = DIMENSION[groupBy];
  const startOf = instantReader(requireColumn(header, START), START);
  const endOf = instantReader(requireColumn(header, END), END);
  const id = requireColumn(header, idColumn);
  const name = nameColumn === undefined ? -1 : requireColumn(header, nameColumn);
  const traces = requireColumn(header, TRACES);
  const workspaceColumn = DIMENSION.workspace.idColumn;
  const workspace = header.includes(workspaceColumn) ? requireColumn(header, workspaceColumn) : -1;
  const foreign = Object.values(DIMENSION)
    .filter((other) => other.idColumn !== idColumn && header.includes(other.idColumn))
    .map((other) => ({ column: other.idColumn, at: header.indexOf(other.idColumn) }));

  /** As many cells as the header has. Throws `AnswerFault` that names line and column. */
  return function fromCsvRow(cells: readonly string[], line: number): ExportRow {
    const bucketStart = startOf(cells, line);
    const bucketEnd = endOf(cells, line);
    if ((bucketStart === null) !== (bucketEnd === null)) {
      const column = bucketStart === null ? START : END;
      throw cellFault(column, "", "is empty, but the bucket's other end is not", line);
    }
    const dimensionId = identityOf(cells, id, idColumn, line);
    const workspaceId = workspace === -1 ? NO_ID : identityOf(cells, workspace, workspaceColumn, line);
    if (dimensionId !== NO_ID) witness.sawOwn();
    else for (const other of foreign) if (cellOf(cells, other.at) !== "") witness.sawForeign(other.column);
    const text = cellOf(cells, traces);
    const count = fromCsvCount(text);
    if (count === undefined) throw cellFault(TRACES, text, "is not a whole number of traces", line);
    return {
      bucketStart,
      bucketEnd,
      workspaceId: workspaceId === NO_ID ? null : workspaceId,
      dimensionId,
      dimensionName: name === -1 ? null : fromWireName(cellOf(cells, name)),
      traces: count,
      line,
    };
  };
}

function cellOf(cells: readonly string[], at: number): string {
  return withoutGuard(cells[at] ?? "");
}

/** Rows of a bucket follow each other: comparing with the last text costs less than looking it up. */
function instantReader(at: number, column: string) {
  let latest: { readonly text: string; readonly instant: number | null } | undefined;
  return (cells: readonly string[], line: number): number | null => {
    const text = cellOf(cells, at);
    if (text === latest?.text) return latest.instant;
    const instant = text === "" ? null : fromWireTime(text);
    if (instant === undefined) throw cellFault(column, text, "is not a timestamp", line);
    latest = { text, instant };
    return instant;
  };
}

function identityOf(cells: readonly string[], at: number, column: string, line: number): string {
  const text = cellOf(cells, at);
  const id = fromWireId(text);
  if (id === undefined) throw cellFault(column, text, "cannot be kept as an id", line);
  return id;
}

function cellFault(column: string, value: string, why: string, line: number): AnswerFault {
  return recordFault(
    `line ${line}, column "${column}": ${describeValue(value)} ${why}`,
    `line ${line}.${column}`,
  );
}

/** Only digits, without leading zeros, at most 2^53 - 1. */
function fromCsvCount(text: string): number | undefined {
  if (!/^(0|[1-9]\d{0,15})$/.test(text)) return undefined;
  const count = Number(text);
  return Number.isSafeInteger(count) ? count : undefined;
}

/** The export puts a tab before a cell that a spreadsheet would run (CSV export in docs/platform.md). */
function withoutGuard(cell: string): string {
  return cell.charCodeAt(0) === 9 && /^\t[=+\-@\t\r]/.test(cell) ? cell.slice(1) : cell;
}

function requireColumn(header: readonly string[], column: string): number {
  const at = header.indexOf(column);
  if (at === -1) throw headerFault(header, `has no column "${column}"`);
  if (header.indexOf(column, at + 1) !== -1) throw headerFault(header, `has the column "${column}" twice`);
  return at;
}

function headerFault(header: readonly string[], what: string): AnswerFault {
  const found = header.slice(0, 20).map((name) => describeValue(name));
  return foreignFault(
    `the export ${what}; its columns are ${found.join(", ")}${header.length > 20 ? ", ..." : ""}`,
  );
}
