import { once } from "node:events";
import { CsvError, type Parser, parse } from "csv-parse";
import { cutFault, recordFault } from "./answer-fault.ts";

/**
 * Receives the cells of a row and the line of the body on which it begins. `isEnded` is false for a last row without a line end:
 * it may lack cells or digits.
 */
export type OnCells = (cells: string[], line: number, isEnded: boolean) => void;

/** Cuts CSV into rows and leaves out empty lines. */
export interface CsvCutter {
  push(chunk: Buffer): void | Promise<void>;
  /** Call it at the end of the body. `proved`: whether the framing proves that nothing follows. */
  end(proved: boolean): void | Promise<void>;
}

/** Ten cells of ids and names; a larger row has a quote that nobody closed. */
const MAX_ROW_CHARACTERS = 1_048_576;
const LINE_FEED = 0x0a;

/** Cuts with csv-parse: what it refuses is refused, with the line. Throws `AnswerFault`, and what `onCells` throws. */
export class CarefulCsv implements CsvCutter {
  readonly #onCells: OnCells;
  readonly #parser: Parser;
  #parsed: string[][] = [];
  #line = 1;
  #lastByte: number | undefined;

  constructor(onCells: OnCells) {
    this.#onCells = onCells;
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
    // Errors arrive in the callback of `write` and in `end`.
    this.#parser.on("error", () => {});
  }

  async push(chunk: Buffer): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#parser.write(chunk, (error) => (error ? reject(this.#faultOf(error)) : resolve()));
    });
    this.#lastByte = chunk.at(-1) ?? this.#lastByte;
    this.#handOut();
  }

  async end(): Promise<void> {
    const finished = once(this.#parser, "finish");
    this.#parser.resume();
    this.#parser.end();
    await finished.catch((error) => {
      throw this.#faultOf(error);
    });
    const unended = this.#lastByte === LINE_FEED ? undefined : this.#parsed.pop();
    this.#handOut();
    if (unended !== undefined) this.#handOutRow(unended, false);
  }

  #handOut(): void {
    const parsed = this.#parsed;
    this.#parsed = [];
    for (const cells of parsed) this.#handOutRow(cells, true);
  }

  #handOutRow(cells: string[], isEnded: boolean): void {
    const line = this.#line;
    this.#line += 1 + cells.reduce((count, cell) => count + cell.split("\n").length - 1, 0);
    if (cells.length > 1 || cells[0] !== "") this.#onCells(cells, line, isEnded);
  }

  /** csv-parse's own messages repeat the cell; these do not. */
  #faultOf(error: unknown): unknown {
    if (!(error instanceof CsvError)) return error;
    const line = Number((error as { lines?: unknown }).lines ?? this.#line);
    if (error.code === "CSV_QUOTE_NOT_CLOSED")
      return cutFault(`the export ends within a quoted cell, line ${line}`);
    return recordFault(`line ${line} is not CSV (${error.code})`, `line ${line}`);
  }
}
