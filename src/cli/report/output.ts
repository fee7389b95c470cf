import Table from "cli-table3";
import { shortInstant } from "../../domain/time/days.ts";
import type { LogTarget } from "../../log.ts";
import { printable, printableLine } from "../../printable.ts";
import { asTyped } from "../../typed.ts";
import { toDocument } from "./document.ts";
import { describeError, factsOf } from "./error-report.ts";
import { asLines, type Cell, fitted } from "./fit.ts";
import { describeLogLine } from "./log-line.ts";
import { type Counted, createBar, type Update } from "./progress.ts";

/** Data goes to stdout, everything else to stderr. Nothing that is written controls a terminal, whoever sent parts of it. */
export interface Output {
  /** Whether `--json` was given. */
  readonly json: boolean;
  /** Writes one JSON document, or the text that `text` returns. */
  data<T>(value: T, text: (value: T) => string): void;
  /** Writes a line for the person. It is never part of the data; with `--json` it is `{"note": ...}`. */
  note(line: string): void;
  /** Writes what ended the command, or its work on one of several sources; with `--json` as an object. */
  error(error: unknown, source?: string): void;
  /** Runs `work` and shows its progress, on a terminal only. `work` may call `update` often. */
  progress<T>(what: Counted, work: (update: Update) => Promise<T>): Promise<T>;
  /** Where the log goes: JSON lines to stderr, but sentences on a terminal, and none of them breaks the bar. */
  readonly logTo: LogTarget;
}

export function createOutput({ json }: { json: boolean }): Output {
  const bar = process.stderr.isTTY && !json ? createBar(process.stderr) : undefined;
  const say = (line: string) => {
    if (bar === undefined) process.stderr.write(`${line}\n`);
    else bar.above(`${line}\n`);
  };
  return {
    json,
    data: (value, text) =>
      void process.stdout.write(`${json ? toDocument(value) : printable(asTyped(text(value)))}\n`),
    note: (line) => say(json ? toDocument({ note: line }) : printable(asTyped(line))),
    error: (error, source) => {
      const facts = factsOf(error);
      if (json) return say(toDocument(source === undefined ? facts : { source, ...facts }));
      return say(printable(asTyped(`${source === undefined ? "" : `${source}: `}${describeError(facts)}`)));
    },
    progress: (what, work) => (bar === undefined ? work(() => {}) : bar.show(what, work)),
    logTo: bar === undefined ? "stderr" : { write: (line) => say(describeLogLine(line)) },
  };
}

const EDGES = ["top", "bottom"].flatMap((edge) => [edge, `${edge}-mid`, `${edge}-left`, `${edge}-right`]);
const LINES = [...EDGES, "left", "left-mid", "mid", "mid-mid", "right", "right-mid"];

/** Rows of a table: these properties of every item. */
export function rowsOf<K extends string>(
  items: readonly Readonly<Record<K, Cell>>[],
  keys: readonly K[],
): Cell[][] {
  return items.map((item) => keys.map((key) => item[key]));
}

/** A table without lines, as wide as its content but no wider than a terminal; numbers to the right. One row that is wider: a list. */
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
  if (typeof cell === "number") return cell.toLocaleString("en-US");
  return cell === null ? "-" : printableLine(cell);
}

export const instant = shortInstant;

/** Such as `1 worker` and `2 workers`. */
export function counted(count: number, thing: string): string {
  return `${count.toLocaleString("en-US")} ${thing}${count === 1 ? "" : "s"}`;
}
