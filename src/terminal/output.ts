import Table from "cli-table3";
import type { LogTarget } from "../core/base/log.ts";
import { printable, printableLine } from "../core/base/printable.ts";
import { shortInstant } from "../core/domain/time/days.ts";
import { describeError, factsOf, refusalOf } from "./error.ts";
import { type Counted, createBar, type Update } from "./progress.ts";

/** Data goes to stdout, everything else to stderr. Control characters are escaped. */
export interface Output {
  readonly json: boolean;
  data<T>(value: T, text: (value: T) => string): undefined;
  note(line: string): void;
  error(error: unknown, source?: string): void;
  progress<T>(what: Counted, work: (update: Update) => Promise<T>): Promise<T>;
  readonly logTo: LogTarget;
}

export interface OutputOptions {
  readonly json?: boolean;
  /** Adds technical details of a refused request. JSON output always has them. */
  readonly verbose?: boolean;
}

export function createOutput({ json = false, verbose = false }: OutputOptions): Output {
  const bar = process.stderr.isTTY && !json ? createBar(process.stderr) : undefined;
  const say = (line: string) => {
    if (bar === undefined) process.stderr.write(`${line}\n`);
    else bar.above(`${line}\n`);
  };
  return {
    json,
    data: (value, text) =>
      void process.stdout.write(`${json ? toDocument(value) : printable(text(value))}\n`),
    note: (line) => say(json ? toDocument({ note: line }) : printable(line)),
    error: (error, source) => {
      const facts = (json || verbose ? undefined : refusalOf(error)) ?? factsOf(error);
      if (json) return say(toDocument(source === undefined ? facts : { source, ...facts }));
      return say(printable(`${source === undefined ? "" : `${source}: `}${describeError(facts)}`));
    },
    progress: (what, work) => (bar === undefined ? work(() => {}) : bar.show(what, work)),
    logTo: bar === undefined ? "stderr" : { write: (line) => say(describeLogLine(line)) },
  };
}

const EDGES = ["top", "bottom"].flatMap((edge) => [edge, `${edge}-mid`, `${edge}-left`, `${edge}-right`]);
const LINES = [...EDGES, "left", "left-mid", "mid", "mid-mid", "right", "right-mid"];

/** Keys are titles. A value is the name of a property of the items, or a function of an item. False: no column. */
type Columns<T> = Readonly<Record<string, CellKey<T> | ((item: T) => Cell) | false>>;
type CellKey<T> = { [K in keyof T]-?: T[K] extends Cell ? K : never }[keyof T];

export function tableOf<T>(items: readonly T[], columns: Columns<T>): string {
  return table(...cellsOf(items, columns));
}

export function cellsOf<T>(items: readonly T[], columns: Columns<T>): [head: string[], rows: Cell[][]] {
  const shown = Object.entries(columns).filter(([, column]) => column !== false);
  const cellOf = (item: T, column: Columns<T>[string]) =>
    typeof column === "function" ? column(item) : (item[column as keyof T] as Cell);
  return [
    shown.map(([title]) => title),
    items.map((item) => shown.map(([, column]) => cellOf(item, column))),
  ];
}

/** A table is as wide as its content, but no wider than a terminal. A single wider row becomes a list. */
export function table(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const empty = Object.fromEntries(LINES.map((part) => [part, ""]));
  const isNumber = head.map((_, column) => rows.some((row) => typeof row[column] === "number"));
  const cells = [[...head], ...rows.map((row) => row.map(shownCell))];
  const columns = process.stdout.isTTY ? process.stdout.columns : undefined;
  const lines = asLines(cells, columns);
  if (lines !== undefined) return lines;
  const [shownHead = [], ...shown] = fitted(cells, columns);
  const drawn = new Table({
    head: shownHead,
    chars: { ...empty, middle: "  " },
    style: { head: [], border: [], "padding-left": 0, "padding-right": 0 },
    colAligns: isNumber.map((number) => (number ? "right" : "left")),
  });
  drawn.push(...shown);
  return drawn.toString();
}

function shownCell(cell: Cell): string {
  if (typeof cell === "number") return count(cell);
  return cell === null ? "-" : printableLine(cell);
}

export const instant = shortInstant;

export function second(instant: string): string {
  return instant.slice(0, 19).replace("T", " ");
}

export function count(number: number): string {
  return number.toLocaleString("en-US");
}

type Line = string | false | undefined;

export function linesOf(...lines: readonly (Line | readonly Line[])[]): string {
  return lines
    .flat()
    .filter((line) => line !== false && line !== undefined)
    .join("\n");
}

function toDocument(value: unknown): string {
  return printable(JSON.stringify(value, asEverywhere));
}

/** Keys of instants, which are epoch ms or short ISO 8601. */
const INSTANTS = new Set(["start", "end", "from", "to", "bucketStart"]);
const DAY_OR_INSTANT = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?Z)?$/;

function asEverywhere(this: unknown, key: string, value: unknown): unknown {
  // `JSON.stringify` already made a Date a text.
  const isDate = (this as Record<string, unknown>)[key] instanceof Date;
  if (isDate || (INSTANTS.has(key) && isInstant(value))) return isoInstant(value as string | number);
  return value;
}

function isInstant(value: unknown): boolean {
  return typeof value === "number" || (typeof value === "string" && DAY_OR_INSTANT.test(value));
}

function isoInstant(value: string | number): string {
  return new Date(value).toISOString().replace(/\.\d{3}Z$/, "Z");
}

const LEFT_OUT = new Set(["level", "time", "msg", "code", "reason", "source"]);
const LEVELS: Readonly<Record<number, string>> = { 10: "trace", 20: "debug", 30: "info", 40: "warning" };

function describeLogLine(json: string): string {
  const line = JSON.parse(json) as Record<string, unknown>;
  const { level, msg, code, reason, source } = line;
  const said = [source, msg, reason].filter((one) => one !== undefined).map(printableLine);
  const rest = Object.entries(line)
    .filter(([name]) => !LEFT_OUT.has(name))
    .map(([name, value]) => ` ${name}=${printableLine(value)}`);
  const end = code === undefined || code === "" ? "" : ` [${printableLine(code)}]`;
  return `${LEVELS[Number(level)] ?? "error"}: ${said.join(": ")}${rest.join("")}${end}`;
}

export type Cell = string | number | null;
type Rows = readonly (readonly Cell[])[];

export function withoutZeros(head: readonly string[], rows: Rows): [head: string[], rows: Cell[][]] {
  const isKept = head.map((_, at) => rows.some((row) => ![0, null, "-"].includes(row[at] ?? null)));
  const kept = <T>(row: readonly T[]) => row.filter((_, at) => isKept[at]);
  return [kept(head), rows.map(kept)];
}

const GAP = 2;
const LEAST = 8;

/** Cuts the longest texts to a terminal's width, so that no row breaks. Pipes, files and `--json` get whole texts. */
function fitted(rows: readonly string[][], columns: number | undefined): string[][] {
  const widths = widthsOf(rows);
  const isTooWide = () => widthOf(widths) > (columns ?? Infinity);
  for (let widest = Math.max(...widths); isTooWide() && widest > LEAST; widest = Math.max(...widths))
    widths[widths.indexOf(widest)] = widest - 1;
  return rows.map((row) =>
    row.map((text, at) => {
      const width = widths[at] ?? text.length;
      return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
    }),
  );
}

/** Shows a single row that is too wide with a line for each column, so that ids can be copied. Else undefined. */
function asLines([head = [], ...rows]: readonly string[][], columns = Infinity): string | undefined {
  const [row] = rows;
  if (row === undefined || rows.length > 1 || widthOf(widthsOf([head, row])) <= columns) return undefined;
  const width = Math.max(...head.map((name) => name.length)) + GAP;
  return head.map((name, at) => name.padEnd(width) + row[at]).join("\n");
}

function widthsOf(rows: readonly string[][]): number[] {
  return (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)));
}

function widthOf(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width + GAP, -GAP);
}

const COLUMNS = 80;

export function wrapped(label: string, text: string): string {
  const room = COLUMNS - label.length;
  const lines: string[] = [];
  const words = text.split(" ").flatMap((word) => word.match(new RegExp(`.{1,${room}}`, "gu")) ?? []);
  for (const word of words) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= room)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return label + lines.join(`\n${" ".repeat(label.length)}`);
}

export function toTheRight<T>(items: readonly T[], textOf: (item: T) => string): (item: T) => string {
  const width = Math.max(...items.map((item) => textOf(item).length));
  return (item) => textOf(item).padStart(width);
}

export function shownDecimal(text: string, currency: string | null, isSigned = false): string {
  const digits =
    currency === null ? { maximumFractionDigits: 4 } : { minimumFractionDigits: 2, maximumFractionDigits: 2 };
  return new Intl.NumberFormat("en-US", {
    ...digits,
    ...(isSigned ? { signDisplay: "exceptZero" } : {}),
  }).format(text as `${number}`);
}
