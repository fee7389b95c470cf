import { SingleBar } from "cli-progress";
import Table from "cli-table3";

/** Data goes to stdout, everything else to stderr. */
export interface Output {
  /** Whether `--json` was given. */
  readonly json: boolean;
  /** One JSON document, or what `text` makes of it. */
  data<T>(value: T, text: (value: T) => string): void;
  /** A line for the person, never part of the data. */
  note(line: string): void;
  /** A progress bar on a terminal, nothing elsewhere; `update` as often as one likes. */
  progress(label: string): Progress;
  /** The same where nobody knows how many there will be: a number that grows. */
  counter(label: string): Counter;
}

interface Progress {
  update(progress: { done: number; total: number }): void;
  stop(): void;
}

interface Counter {
  update(done: number): void;
  stop(): void;
}

export function createOutput(options: { json: boolean }): Output {
  return {
    json: options.json,
    data: (value, text) =>
      void process.stdout.write(`${options.json ? JSON.stringify(value) : text(value)}\n`),
    note: (line) => void process.stderr.write(`${line}\n`),
    progress: (label) => (process.stderr.isTTY && !options.json ? bar(label) : SILENT),
    counter: (label) =>
      process.stderr.isTTY && !options.json ? counting(label) : { update: () => {}, stop: () => {} },
  };
}

const SILENT: Progress = { update: () => {}, stop: () => {} };

function bar(label: string): Progress {
  const startedAt = Date.now();
  const drawn = new SingleBar({
    format: `${label} [{bar}] {value}/{total} {percentage}% {eta_formatted} left`,
    stream: process.stderr,
    hideCursor: true,
    clearOnComplete: true,
  });
  let isDrawn = false;
  return {
    update: ({ done, total }) => {
      // Work of under a second needs no bar.
      if (!isDrawn && Date.now() - startedAt < 1000) return;
      if (!isDrawn) drawn.start(total, done);
      isDrawn = true;
      drawn.setTotal(total);
      drawn.update(done);
    },
    stop: () => {
      if (isDrawn) drawn.stop();
    },
  };
}

function counting(label: string): Counter {
  let drawnAt = Date.now();
  let isDrawn = false;
  return {
    update: (done) => {
      // Work of under a second needs no line.
      if (Date.now() - drawnAt < 1000) return;
      drawnAt = Date.now();
      isDrawn = true;
      process.stderr.write(`\r${done.toLocaleString("en-US")} ${label}`);
    },
    stop: () => {
      if (isDrawn) process.stderr.write("\r\x1b[K");
    },
  };
}

/** A table without lines, as wide as its content; numbers to the right. */
export function table(
  head: readonly string[],
  rows: readonly (readonly (string | number | null)[])[],
): string {
  const empty = Object.fromEntries(
    ["top", "top-mid", "top-left", "top-right", "bottom", "bottom-mid", "bottom-left", "bottom-right"]
      .concat(["left", "left-mid", "mid", "mid-mid", "right", "right-mid", "middle"])
      .map((part) => [part, part === "middle" ? "  " : ""]),
  );
  const isNumber = head.map((_, column) => rows.some((row) => typeof row[column] === "number"));
  const drawn = new Table({
    head: [...head],
    chars: empty,
    style: { head: [], border: [], "padding-left": 0, "padding-right": 0 },
    colAligns: isNumber.map((number) => (number ? "right" : "left")),
  });
  for (const row of rows) drawn.push(row.map((cell) => (cell === null ? "-" : groupDigits(cell))));
  return drawn.toString();
}

function groupDigits(cell: string | number): string {
  return typeof cell === "number" ? cell.toLocaleString("en-US") : cell;
}

/** A UTC instant, as short as it can be said: `2026-03-01` or `2026-03-01T05:00Z`. */
export function instant(epochMs: number): string {
  const text = new Date(epochMs).toISOString();
  return text.endsWith("T00:00:00.000Z") ? text.slice(0, 10) : `${text.slice(0, 16)}Z`;
}

/** Adds `externalId`, the former name of `dimensionId` in `--json`: scripts read it. */
export function withExternalId<T extends { readonly dimensionId: string }>(
  all: readonly T[],
): (T & { externalId: string })[] {
  return all.map((one) => ({ ...one, externalId: one.dimensionId }));
}
