import { type GroupBy, NO_ID, type UsageRecord } from "../domain/record.ts";
import { type AnswerFault, foreignFault, recordFault } from "./answer-fault.ts";
import { DIMENSION, type GroupingWitness } from "./grouping.ts";
import { describeValue, fromWireId, fromWireName, fromWireTime } from "./wire-values.ts";

/** A row of the CSV export as a record. */
export interface ExportRow extends UsageRecord {
  /** Epoch milliseconds of the bucket's end; null where, and only where, the row has no start either. */
  readonly bucketEnd: number | null;
  /** Line of the body on which the row begins; the header is line 1. */
  readonly line: number;
}

const START = "Time Bucket Start";
const END = "Time Bucket End";
const TRACES = "Traces";

/**
 * A reader of rows, by the names in the header: other columns may stand anywhere among them. Throws `AnswerFault`
 * (`answer_invalid`) for a header without a column of this grouping.
 */
export function csvRowReader(header: readonly string[], groupBy: GroupBy, witness: GroupingWitness) {
  const { idColumn, nameColumn } = DIMENSION[groupBy];
  const start = requireColumn(header, START);
  const end = requireColumn(header, END);
  const id = requireColumn(header, idColumn);
  const name = nameColumn === undefined ? -1 : requireColumn(header, nameColumn);
  const traces = requireColumn(header, TRACES);
  const workspace = header.indexOf(DIMENSION.workspace.idColumn);
  const foreign = Object.values(DIMENSION)
    .filter((other) => other.idColumn !== idColumn && header.includes(other.idColumn))
    .map((other) => ({ column: other.idColumn, at: header.indexOf(other.idColumn) }));

  /** Cells as the header has them, one each. Throws `AnswerFault` that names line and column. */
  return function fromCsvRow(cells: readonly string[], line: number): ExportRow {
    const cell = (at: number) => withoutGuard(cells[at] ?? "");
    const fail = (column: string, value: string, why: string) =>
      recordFault(
        `line ${line}, column "${column}": ${describeValue(value)} ${why}`,
        `line ${line}.${column}`,
      );
    const instant = (at: number, column: string): number | null => {
      const value = cell(at);
      const parsed = value === "" ? null : fromWireTime(value);
      if (parsed === undefined) throw fail(column, value, "is no timestamp");
      return parsed;
    };
    const identity = (at: number, column: string): string => {
      const value = fromWireId(cell(at));
      if (value === undefined) throw fail(column, cell(at), "cannot be kept as an id");
      return value;
    };
    const bucketStart = instant(start, START);
    const bucketEnd = instant(end, END);
    if ((bucketStart === null) !== (bucketEnd === null)) {
      throw fail(bucketStart === null ? START : END, "", "is empty, but the bucket's other end is not");
    }
    const dimensionId = identity(id, idColumn);
    const workspaceId = workspace === -1 ? NO_ID : identity(workspace, DIMENSION.workspace.idColumn);
    if (dimensionId !== NO_ID) witness.sawOwn();
    else for (const other of foreign) if (cell(other.at) !== "") witness.sawForeign(other.column);
    const count = fromCsvCount(cell(traces));
    if (count === undefined) throw fail(TRACES, cell(traces), "is no whole number of traces");
    return {
      bucketStart,
      bucketEnd,
      workspaceId: workspaceId === NO_ID ? null : workspaceId,
      dimensionId,
      dimensionName: name === -1 ? null : fromWireName(cell(name)),
      traces: count,
      line,
    };
  };
}

/** Digits alone, without sign, group marks or leading zeros, at most 2^53 - 1. */
function fromCsvCount(text: string): number | undefined {
  if (!/^(0|[1-9]\d{0,15})$/.test(text)) return undefined;
  const count = Number(text);
  return Number.isSafeInteger(count) ? count : undefined;
}

/** The export puts a tab before a cell that a spreadsheet would run (platform-facts.md, CSV export). */
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
