import { BUCKET_COLUMNS, type ExportRow } from "../../domain/usage/export.ts";
import { METER, type Measure, type Meter } from "../../domain/usage/meter.ts";
import { type GroupBy, NO_ID } from "../../domain/usage/record.ts";
import type { CsvCutter, OnCells } from "./csv-cells.ts";
import { cutError, foreignError, ResponseError, recordError } from "./response-error.ts";
import {
  DIMENSION,
  describeValue,
  fromWireId,
  fromWireTime,
  GroupingWitness,
  nameOf,
} from "./wire-values.ts";

/**
 * `PlainCsv` is several times faster than `CarefulCsv` and refuses more. Throws `ResponseError`, and errors of the cutter and
 * `onRows`.
 */
export class ExportReader {
  readonly #subject: ExportSubject;
  readonly #onRows: (rows: ExportRow[]) => void;
  readonly #cutter: CsvCutter;
  readonly #witness = new GroupingWitness();
  #fromCsvRow: ReturnType<typeof csvRowReader> | undefined;
  #columns = 0;
  #ready: ExportRow[] = [];
  /** True if the last row has no line end, so its last cell may be cut. */
  isLastUnended = false;
  #unended: { cells: string[]; line: number } | undefined;

  constructor(
    Cutter: new (onCells: OnCells) => CsvCutter,
    subject: ExportSubject,
    onRows: (rows: ExportRow[]) => void,
  ) {
    this.#subject = subject;
    this.#onRows = onRows;
    this.#cutter = new Cutter((cells, line, isEnded) => {
      if (isEnded) this.#take(cells, line);
      else this.#unended = { cells, line };
    });
  }

  async push(chunk: Buffer): Promise<void> {
    await this.#cutter.push(chunk);
    this.#handOut();
  }

  /**
   * `proved`: the framing proves that nothing follows. Otherwise a last row without a line end is left out, because its
   * number may have lost digits.
   */
  async end(proved: boolean): Promise<void> {
    await this.#cutter.end(proved);
    if (this.#unended !== undefined) this.#takeUnended(this.#unended, proved);
    if (this.#fromCsvRow === undefined) throw cutError("the export ends before its header");
    this.#handOut();
    const foreign = this.#witness.verdict();
    if (foreign !== undefined) {
      throw foreignError(
        `the export is not grouped by ${this.#subject.groupBy}: its rows fill the column "${foreign}" instead`,
      );
    }
  }

  #take(cells: string[], line: number): void {
    if (this.#fromCsvRow === undefined) {
      this.#columns = cells.length;
      const header = cells.map((name) => name.trim());
      this.#fromCsvRow = csvRowReader(header, this.#subject, this.#witness);
    } else if (cells.length === this.#columns) {
      this.#fromCsvRow(cells, line, this.#ready);
    } else {
      const message = `line ${line} has ${cells.length} columns, the header ${this.#columns}`;
      throw recordError(message, `line ${line}`);
    }
  }

  #takeUnended({ cells, line }: { cells: string[]; line: number }, proved: boolean): void {
    if (this.#fromCsvRow === undefined && !proved) throw cutError("the export ends within its header");
    if (cells.length < this.#columns) {
      const found = `${cells.length} of ${this.#columns} columns`;
      throw cutError(`the export ends within line ${line}, after ${found}`);
    }
    if (!proved) return;
    this.isLastUnended = this.#fromCsvRow !== undefined;
    try {
      this.#take(cells, line);
    } catch (error) {
      if (!this.isLastUnended || !(error instanceof ResponseError)) throw error;
      throw cutError(`the export ends within line ${line}: ${error.message}`);
    }
  }

  #handOut(): void {
    const rows = this.#ready;
    this.#ready = [];
    if (rows.length > 0) this.#onRows(rows);
  }
}

const { start: START, end: END } = BUCKET_COLUMNS;
/** Columns of exported measures (CSV export in docs/platform.md). */
const MEASURE_COLUMNS: Readonly<Partial<Record<Measure, string>>> = {
  traces: "Traces",
  nodes_executed: "Nodes Executed",
  agent_runs: "Agent Runs",
  agent_uptime_seconds: "Agent Uptime (seconds)",
};

function measureColumn(measure: Measure): string {
  const column = MEASURE_COLUMNS[measure];
  if (column === undefined) throw new RangeError(`No export has ${measure}`);
  return column;
}

export interface ExportSubject {
  readonly meter: Meter;
  readonly groupBy: GroupBy;
}

/** Finds columns by name and ignores others. Throws `ResponseError` (`response_invalid`) if a required column is missing. */
function csvRowReader(
  header: readonly string[],
  { meter, groupBy }: ExportSubject,
  witness: GroupingWitness,
) {
  const { idColumn, nameColumn } = DIMENSION[groupBy];
  const startOf = instantReader(requireColumn(header, START), START);
  const endOf = instantReader(requireColumn(header, END), END);
  const id = requireColumn(header, idColumn);
  const name = nameColumn === undefined ? -1 : requireColumn(header, nameColumn);
  const amounts = METER[meter].measures.map((measure) => ({
    measure,
    column: measureColumn(measure),
    at: requireMeasure(header, measure, meter),
  }));
  const workspaceColumn = DIMENSION.workspace.idColumn;
  const workspace = header.includes(workspaceColumn) ? requireColumn(header, workspaceColumn) : -1;
  const foreign = Object.values(DIMENSION)
    .filter((other) => other.idColumn !== idColumn && header.includes(other.idColumn))
    .map((other) => ({ column: other.idColumn, at: header.indexOf(other.idColumn) }));

  /** Adds the row once for each measure. `cells` is as long as the header. Throws `ResponseError` with line and column. */
  return function fromCsvRow(cells: readonly string[], line: number, rows: ExportRow[]): void {
    const bucketStart = startOf(cells, line);
    const bucketEnd = endOf(cells, line);
    if ((bucketStart === null) !== (bucketEnd === null)) {
      const column = bucketStart === null ? START : END;
      throw cellError(column, "", "is empty, but the bucket's other end is not", line);
    }
    const dimensionId = identityOf(cells, id, idColumn, line);
    const workspaceId = workspace === -1 ? NO_ID : identityOf(cells, workspace, workspaceColumn, line);
    if (dimensionId !== NO_ID) witness.sawOwn();
    else for (const other of foreign) if (cellOf(cells, other.at) !== "") witness.sawForeign(other.column);
    const dimensionName = name === -1 ? null : nameOf(dimensionId, cellOf(cells, name));
    for (const { measure, column, at } of amounts) {
      const text = cellOf(cells, at);
      const traces = fromCsvCount(text);
      if (traces === undefined) {
        const what =
          measure === "traces" ? "is not a whole number of traces" : "is not a whole number from 0 on";
        throw cellError(column, text, what, line);
      }
      const row = {
        bucketStart,
        bucketEnd,
        workspaceId: workspaceId === NO_ID ? null : workspaceId,
        dimensionId,
        dimensionName,
        traces,
        line,
      };
      rows.push(measure === "traces" ? row : { ...row, measure });
    }
  };
}

function cellOf(cells: readonly string[], at: number): string {
  return withoutGuard(cells[at] ?? "");
}

/** Rows of a bucket follow each other, so comparing with the last text costs less than a look-up. */
function instantReader(at: number, column: string) {
  let latest: { readonly text: string; readonly instant: number | null } | undefined;
  return (cells: readonly string[], line: number): number | null => {
    const text = cellOf(cells, at);
    if (text === latest?.text) return latest.instant;
    const instant = text === "" ? null : fromWireTime(text);
    if (instant === undefined) throw cellError(column, text, "is not a timestamp", line);
    latest = { text, instant };
    return instant;
  };
}

function identityOf(cells: readonly string[], at: number, column: string, line: number): string {
  const text = cellOf(cells, at);
  const id = fromWireId(text);
  if (id === undefined) throw cellError(column, text, "cannot be kept as an id", line);
  return id;
}

function cellError(column: string, value: string, why: string, line: number): ResponseError {
  return recordError(
    `line ${line}, column "${column}": ${describeValue(value)} ${why}`,
    `line ${line}.${column}`,
  );
}

function fromCsvCount(text: string): number | undefined {
  if (!/^(0|[1-9]\d{0,15})$/.test(text)) return undefined;
  const count = Number(text);
  return Number.isSafeInteger(count) ? count : undefined;
}

/** The export puts a tab before a cell that a spreadsheet would run. */
function withoutGuard(cell: string): string {
  return cell.charCodeAt(0) === 9 && /^\t[=+\-@\t\r]/.test(cell) ? cell.slice(1) : cell;
}

/** An export of deployment usage that lacks one of its columns is another export, or incomplete. */
function requireMeasure(header: readonly string[], measure: Measure, meter: Meter): number {
  const column = measureColumn(measure);
  if (meter !== "deployments" || header.includes(column)) return requireColumn(header, column);
  const all = METER[meter].measures.map((one) => `"${measureColumn(one)}"`).join(", ");
  throw new ResponseError({
    code: "response_invalid",
    message: headerMessage(header, `of deployment usage has no column "${column}"`),
    location: `line 1.${column}`,
    next: `Nothing was compared. It needs the columns ${all}. If the server has no export of deployment usage, compare traces alone with --kind traces.`,
  });
}

function requireColumn(header: readonly string[], column: string): number {
  const at = header.indexOf(column);
  if (at === -1) throw headerError(header, `has no column "${column}"`);
  if (header.indexOf(column, at + 1) !== -1) throw headerError(header, `has the column "${column}" twice`);
  return at;
}

function headerError(header: readonly string[], what: string): ResponseError {
  return foreignError(headerMessage(header, what));
}

function headerMessage(header: readonly string[], what: string): string {
  const found = header.slice(0, 20).map((name) => describeValue(name));
  return `the export ${what}; its columns are ${found.join(", ")}${header.length > 20 ? ", ..." : ""}`;
}
