import { once } from "node:events";
import { CsvError, type Parser, parse } from "csv-parse";
import type { ExportRow } from "../../domain/usage/export.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import { cutFault, foreignFault, recordFault } from "./answer-fault.ts";
import { csvRowReader } from "./csv-rows.ts";
import { GroupingWitness } from "./grouping.ts";

/** Ten cells of ids and names; more than this is a quote that nobody closed. */
const MAX_ROW_CHARACTERS = 1_048_576;
const LINE_FEED = 0x0a;

/**
 * Reads a CSV export (platform-api.md, Granular usage CSV) as its bytes come, with csv-parse: what it refuses is refused,
 * by line and column. The last row is held back until what
 * follows it is known: half a row is told from a whole one only by that.
 */
export class CsvExportReader {
  readonly #groupBy: GroupBy;
  readonly #onRows: (rows: ExportRow[]) => void;
  readonly #witness = new GroupingWitness();
  readonly #parser: Parser;
  #parsed: string[][] = [];
  #fromCsvRow: ReturnType<typeof csvRowReader> | undefined;
  #columns = 0;
  #header: string[] | undefined;
  #held: { cells: string[]; line: number } | undefined;
  #line = 1;
  #rows = 0;
  #lastByte: number | undefined;

  constructor(groupBy: GroupBy, onRows: (rows: ExportRow[]) => void) {
    this.#groupBy = groupBy;
    this.#onRows = onRows;
    this.#parser = parse({
      bom: true,
      record_delimiter: ["\r\n", "\n"],
      relax_column_count: true,
      max_record_size: MAX_ROW_CHARACTERS,
      on_record: (cells: string[]) => {
        this.#parsed.push(cells);
        return null;
      },
    });
    // Each failure is taken from the callback of the write that met it.
    this.#parser.on("error", () => {});
  }

  /** Throws `AnswerFault`, and whatever `onRows` throws. */
  async push(chunk: Buffer): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#parser.write(chunk, (error) => (error ? reject(this.#parseFault(error)) : resolve()));
    });
    this.#lastByte = chunk.at(-1) ?? this.#lastByte;
    this.#handOut();
  }

  /**
   * To be called at the end of the body. `proved`: whether the body's framing proves that this is its end. Where it does
   * not, a last row without a line end is left out, since its number may have lost digits.
   */
  async end(proved: boolean): Promise<{ readonly rows: number }> {
    const finished = once(this.#parser, "finish");
    this.#parser.resume();
    this.#parser.end();
    await finished.catch((error) => {
      throw this.#parseFault(error);
    });
    const terminated = this.#lastByte === LINE_FEED;
    if (this.#header === undefined && this.#parsed.length === 0)
      throw cutFault("the export ends before its header");
    if (this.#fromCsvRow === undefined && !terminated && !proved)
      throw cutFault("the export ends within its header");
    this.#handOut();
    const last = this.#held;
    this.#held = undefined;
    if (last !== undefined && !terminated) {
      if (last.cells.length < this.#columns) {
        throw cutFault(
          `the export ends within line ${last.line}, after ${last.cells.length} of ${this.#columns} columns`,
        );
      }
      if (proved) this.#deliver([last]);
    } else if (last !== undefined) this.#deliver([last]);
    const foreign = this.#witness.verdict();
    if (foreign !== undefined) {
      throw foreignFault(
        `the export is not grouped by ${this.#groupBy}: its rows fill the column "${foreign}" instead`,
      );
    }
    return { rows: this.#rows };
  }

  /** Everything parsed so far but the last row. */
  #handOut(): void {
    const ready: { cells: string[]; line: number }[] = [];
    for (const cells of this.#parsed) {
      const line = this.#line;
      this.#line += 1 + lineFeedsIn(cells);
      if (cells.length === 1 && cells[0] === "") continue;
      if (this.#fromCsvRow === undefined) {
        this.#readHeader(cells);
        continue;
      }
      if (this.#held !== undefined) ready.push(this.#held);
      this.#held = { cells, line };
    }
    this.#parsed = [];
    if (ready.length > 0) this.#deliver(ready);
  }

  #readHeader(cells: readonly string[]): void {
    this.#header = cells.map((name) => name.trim());
    this.#columns = cells.length;
    this.#fromCsvRow = csvRowReader(this.#header, this.#groupBy, this.#witness);
  }

  #deliver(ready: readonly { cells: string[]; line: number }[]): void {
    const fromCsvRow = this.#fromCsvRow;
    if (fromCsvRow === undefined) return;
    const rows = ready.map(({ cells, line }) => {
      if (cells.length === this.#columns) return fromCsvRow(cells, line);
      throw recordFault(
        `line ${line} has ${cells.length} columns, the header ${this.#columns}`,
        `line ${line}`,
      );
    });
    this.#rows += rows.length;
    this.#onRows(rows);
  }

  /** csv-parse's own messages repeat the cell; these do not. */
  #parseFault(error: unknown): unknown {
    if (!(error instanceof CsvError)) return error;
    const line = Number((error as { lines?: unknown }).lines ?? this.#line);
    if (error.code === "CSV_QUOTE_NOT_CLOSED")
      return cutFault(`the export ends within a quoted cell, line ${line}`);
    return recordFault(`line ${line} is not CSV (${error.code})`, `line ${line}`);
  }
}

function lineFeedsIn(cells: readonly string[]): number {
  let count = 0;
  for (const cell of cells) {
    for (let at = cell.indexOf("\n"); at !== -1; at = cell.indexOf("\n", at + 1)) count += 1;
  }
  return count;
}
