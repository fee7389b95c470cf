import type { ExportRow } from "../../domain/usage/export.ts";
import { AnswerFault, cutFault, foreignFault, recordFault } from "./answer-fault.ts";
import type { CsvCutter, OnCells } from "./careful-csv.ts";
import { csvRowReader, type ExportSubject } from "./csv-rows.ts";
import { GroupingWitness } from "./grouping.ts";

/**
 * Reads the rows of a CSV export (CSV export in docs/platform.md) from its bytes. `Cutter` is `CarefulCsv` or `PlainCsv`, which
 * is several times faster and refuses more. Throws `AnswerFault`, and what the cutter and `onRows` throw.
 */
export class ExportReader {
  readonly #subject: ExportSubject;
  readonly #onRows: (rows: ExportRow[]) => void;
  readonly #cutter: CsvCutter;
  readonly #witness = new GroupingWitness();
  #fromCsvRow: ReturnType<typeof csvRowReader> | undefined;
  #columns = 0;
  #ready: ExportRow[] = [];
  /** Whether the last row that was handed out has no line end: then its last cell may be cut. */
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
   * Call it at the end of the body. `proved`: whether its framing proves that nothing follows. If not, a last row without a line end
   * is left out, because its number may have lost digits.
   */
  async end(proved: boolean): Promise<void> {
    await this.#cutter.end(proved);
    if (this.#unended !== undefined) this.#takeUnended(this.#unended, proved);
    if (this.#fromCsvRow === undefined) throw cutFault("the export ends before its header");
    this.#handOut();
    const foreign = this.#witness.verdict();
    if (foreign !== undefined) {
      throw foreignFault(
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
      throw recordFault(message, `line ${line}`);
    }
  }

  #takeUnended({ cells, line }: { cells: string[]; line: number }, proved: boolean): void {
    if (this.#fromCsvRow === undefined && !proved) throw cutFault("the export ends within its header");
    if (cells.length < this.#columns) {
      const found = `${cells.length} of ${this.#columns} columns`;
      throw cutFault(`the export ends within line ${line}, after ${found}`);
    }
    if (!proved) return;
    this.isLastUnended = this.#fromCsvRow !== undefined;
    try {
      this.#take(cells, line);
    } catch (error) {
      if (!this.isLastUnended || !(error instanceof AnswerFault)) throw error;
      throw cutFault(`the export ends within line ${line}: ${error.message}`);
    }
  }

  #handOut(): void {
    const rows = this.#ready;
    this.#ready = [];
    if (rows.length > 0) this.#onRows(rows);
  }
}
