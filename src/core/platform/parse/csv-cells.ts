import { once } from "node:events";
import { StringDecoder } from "node:string_decoder";
import { CsvError, type Parser, parse } from "csv-parse";
import { cutError, recordError } from "./response-error.ts";

/** `line`: where the row begins. `isEnded`: false for a last row without a line end, which may lack cells or digits. */
export type OnCells = (cells: string[], line: number, isEnded: boolean) => void;

export interface CsvCutter {
  push(chunk: Buffer): void | Promise<void>;
  end(proved: boolean): void | Promise<void>;
}

/** A larger row has a quote that was never closed. */
const MAX_ROW_CHARACTERS = 1_048_576;
const LINE_FEED = 0x0a;

/** csv-parse decides what is valid. Throws `ResponseError` and errors of `onCells`. */
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

  /** csv-parse's messages repeat the cell; the messages here do not. */
  #faultOf(error: unknown): unknown {
    if (!(error instanceof CsvError)) return error;
    const line = Number((error as { lines?: unknown }).lines ?? this.#line);
    if (error.code === "CSV_QUOTE_NOT_CLOSED")
      return cutError(`the export ends within a quoted cell, line ${line}`);
    return recordError(`line ${line} is not CSV (${error.code})`, `line ${line}`);
  }
}

/** The body is irregular, so only `CarefulCsv` may judge it. */
export class NotPlain extends Error {}

const MAX_REST_CHARACTERS = 262_144;

/**
 * Cuts the CSV of RFC 4180 in a fifth of csv-parse's time. Throws `NotPlain` for anything irregular (a quote within a cell,
 * half a row at the end), which csv-parse then decides. Both cutters give the same rows.
 */
export class PlainCsv implements CsvCutter {
  readonly #onCells: OnCells;
  readonly #decoder = new StringDecoder("utf8");
  #rest = "";
  #line = 1;
  #isBegun = false;
  #isEnded = true;

  constructor(onCells: OnCells) {
    this.#onCells = onCells;
  }

  push(chunk: Buffer): void {
    let text = this.#rest + this.#decoder.write(chunk);
    if (!this.#isBegun && text !== "") {
      this.#isBegun = true;
      if (text.charCodeAt(0) === 0xfeff) text = text.slice(1);
    }
    this.#rest = text.slice(this.#cut(text));
    if (this.#rest.length > MAX_REST_CHARACTERS) throw new NotPlain();
  }

  end(proved: boolean): void {
    if (this.#rest === "") return;
    // A carriage return alone ends no row. If the end is not proved, the last number may lack digits.
    if (!proved || this.#rest.endsWith("\r")) throw new NotPlain();
    const text = `${this.#rest}\n`;
    this.#isEnded = false;
    if (this.#cut(text) !== text.length) throw new NotPlain();
    this.#rest = "";
  }

  #cut(text: string): number {
    let at = 0;
    let quote = text.indexOf('"');
    for (;;) {
      const lineFeed = text.indexOf("\n", at);
      if (lineFeed === -1) return at;
      if (quote !== -1 && quote < at) quote = text.indexOf('"', at);
      if (quote === -1 || quote > lineFeed) {
        const end = text.charCodeAt(lineFeed - 1) === 13 && lineFeed > at ? lineFeed - 1 : lineFeed;
        this.#handOut(text.slice(at, end).split(","), 1);
        at = lineFeed + 1;
        continue;
      }
      const row = quotedRow(text, at);
      if (row === undefined) return at;
      this.#handOut(row.cells, row.lineFeeds);
      at = row.end;
    }
  }

  #handOut(cells: string[], lineFeeds: number): void {
    const line = this.#line;
    this.#line += lineFeeds;
    if (cells.length === 1 && cells[0] === "") return;
    this.#onCells(cells, line, this.#isEnded);
  }
}

function quotedRow(
  text: string,
  at: number,
): { cells: string[]; lineFeeds: number; end: number } | undefined {
  const cells: string[] = [];
  let lineFeeds = 1;
  for (let from = at; ; ) {
    const cell = text.charCodeAt(from) === 34 ? quotedCell(text, from) : bareCell(text, from);
    if (cell === undefined) return undefined;
    cells.push(cell.value);
    for (let i = cell.value.indexOf("\n"); i !== -1; i = cell.value.indexOf("\n", i + 1)) lineFeeds += 1;
    from = cell.next;
    if (cell.isLast) return { cells, lineFeeds, end: from };
  }
}

interface Cell {
  readonly value: string;
  readonly isLast: boolean;
  readonly next: number;
}

function bareCell(text: string, from: number): Cell | undefined {
  const lineFeed = text.indexOf("\n", from);
  const comma = text.indexOf(",", from);
  const isLast = comma === -1 || (lineFeed !== -1 && lineFeed < comma);
  const end = isLast ? lineFeed : comma;
  if (end === -1) return undefined;
  const value = text.slice(from, isLast && text.charCodeAt(end - 1) === 13 && end > from ? end - 1 : end);
  if (value.includes('"')) throw new NotPlain();
  return { value, isLast, next: end + 1 };
}

function quotedCell(text: string, from: number): Cell | undefined {
  let close = text.indexOf('"', from + 1);
  while (close !== -1 && text.charCodeAt(close + 1) === 34) close = text.indexOf('"', close + 2);
  if (close === -1 || close + 1 === text.length) return undefined;
  const value = text.slice(from + 1, close).replaceAll('""', '"');
  const after = text.charCodeAt(close + 1);
  if (after === 44) return { value, isLast: false, next: close + 2 };
  if (after === 10) return { value, isLast: true, next: close + 2 };
  if (after !== 13) throw new NotPlain();
  if (close + 2 === text.length) return undefined;
  if (text.charCodeAt(close + 2) !== 10) throw new NotPlain();
  return { value, isLast: true, next: close + 3 };
}
