import { CsvError, type Options, parse } from "csv-parse/sync";
import { refuseGiven } from "../core/base/given-file.ts";
import { nearest } from "../core/base/spelling.ts";

export interface CsvRow {
  readonly line: number;
  readonly cells: Readonly<Record<string, string>>;
}

interface CsvForm {
  readonly columns: readonly string[];
  readonly required?: readonly string[];
  /** Columns of numbers. They are returned with a decimal point and without thousands separators. */
  readonly numbers: readonly string[];
  readonly trim?: boolean;
}

const DELIMITERS = [",", ";", "\t"];

/**
 * Reads a CSV file with a header as a spreadsheet of any language saves it: with commas, semicolons or tabs, and with empty
 * rows and columns. Error: `file_invalid`, with line and column of every problem.
 */
export function csvRows(file: string, content: string, form: CsvForm): CsvRow[] {
  const delimiter = delimiterOf(content);
  const parsing = { delimiter, trim: form.trim ?? false };
  const [head = { line: 1, cells: [] }, ...body] = cellsOf(file, content, parsing);
  const header = head.cells.map((name) => name.trim().toLowerCase().replaceAll(/[ -]/g, "_"));
  const problems = problemsOfHeader(header, form).map((why) => `line ${head.line}: ${why}`);
  refuseGiven(file, problems);
  const isCut = !/[\r\n]$/.test(content);
  for (const { line, cells } of body) {
    const beyond = cells.findIndex((cell, at) => cell.trim() !== "" && !header[at]);
    const isLast = line === body.at(-1)?.line;
    if (beyond !== -1) {
      const cell = JSON.stringify(cells[beyond]);
      problems.push(
        `line ${line}: cell ${beyond + 1} (${cell}) has no column. Quote a cell that has a separator in it, such as "0,5"`,
      );
    } else if (cells.length < header.length && ((isCut && isLast) || hasOtherDelimiter(cells))) {
      problems.push(`line ${line}: it has ${cells.length} cells, and the header has ${header.length}`);
    }
  }
  const rows = body.map(({ line, cells }) => ({
    line,
    // Excel may leave out the separators at the end of a row.
    cells: Object.fromEntries(header.flatMap((name, at) => (name === "" ? [] : [[name, cells[at] ?? ""]]))),
  }));
  const numbered = form.numbers.filter((name) => header.includes(name));
  const isPointDecimal = delimiter === ",";
  const read = withPlainNumbers(rows, { numbered, isPointDecimal }, problems);
  refuseGiven(file, problems);
  return read;
}

/** Finds the separator in the header, since no column name contains one. */
export function delimiterOf(content: string): string {
  const header = /.*\S.*/.exec(content)?.[0] ?? "";
  const count = (delimiter: string) => header.split(delimiter).length;
  return DELIMITERS.reduce((best, other) => (count(other) > count(best) ? other : best));
}

function cellsOf(file: string, content: string, options: Options) {
  try {
    const rows = parse(content, {
      ...options,
      bom: true,
      info: true,
      record_delimiter: ["\r\n", "\n", "\r"],
      relax_column_count: true,
    }) as unknown as { record: string[]; info: { lines: number } }[];
    return rows
      .map(({ record, info }) => ({ line: info.lines, cells: record }))
      .filter(({ cells }) => cells.some((cell) => cell.trim() !== ""));
  } catch (error) {
    if (error instanceof CsvError) refuseGiven(file, [`line ${Number(error.lines ?? 1)}: ${error.message}`]);
    throw error;
  }
}

function problemsOfHeader(header: readonly string[], { columns, required = [] }: CsvForm): string[] {
  const names = header.filter((name) => name !== "");
  if (names.length === 0) return ["the file is empty"];
  const twice = names.filter((name, at) => names.indexOf(name) < at);
  return [
    ...names.filter((name) => !columns.includes(name)).map((name) => unknownColumn(name, columns)),
    ...required.filter((name) => !names.includes(name)).map((name) => `there is no column "${name}"`),
    ...[...new Set(twice)].map((name) => `there are two columns "${name}"`),
  ];
}

function unknownColumn(name: string, known: readonly string[]): string {
  const near = nearest(name, known);
  const hint = near === undefined ? `columns are ${known.join(", ")}` : `did you mean ${near}?`;
  return `there is no column ${JSON.stringify(name)}; ${hint}`;
}

function hasOtherDelimiter(cells: readonly string[]): boolean {
  return cells.some((cell) => DELIMITERS.some((delimiter) => cell.includes(delimiter)));
}

/** `1.234` is more than a thousand in some countries, and little more than one in others. */
const EITHER = /^[+-]?[1-9]\d{0,2}[.,]\d{3}$/;
const WITH_POINT = /^[+-]?(\d*|\d{1,3}(,\d{3})+)(\.\d*)?(e[+-]?\d+)?$/i;

/** The other numbers of the file decide how an ambiguous number is read. Cells that are not numbers stay as they are. */
function withPlainNumbers(
  rows: readonly CsvRow[],
  { numbered, isPointDecimal }: { numbered: readonly string[]; isPointDecimal: boolean },
  problems: string[],
): CsvRow[] {
  const all = rows.flatMap(({ cells }) =>
    numbered.map((name) => decimalSignOf(ungrouped(cells[name] ?? ""))),
  );
  const signs = new Set(all.filter((sign) => sign !== undefined && sign !== "either"));
  const [known] = signs.size === 1 ? signs : [];
  return rows.map(({ line, cells }) => {
    const plain = numbered.map((name) => {
      const cell = ungrouped(cells[name] ?? "");
      const found = decimalSignOf(cell);
      const isPoint = isPointDecimal && signs.size === 0 && cell.includes(".");
      const sign = found === "either" ? (known ?? (isPoint ? "." : undefined)) : (found ?? ".");
      if (sign === undefined) {
        const [whole, decimal] = [cell.replace(/[.,]/, ""), cell.replace(",", ".")];
        problems.push(
          `line ${line}, column "${name}": ${JSON.stringify(cell)} may be ${whole} or ${decimal}. Write ${whole} or ${decimal}0`,
        );
      }
      return [name, withPoint(cell, sign ?? ".") ?? cell];
    });
    return { line, cells: { ...cells, ...Object.fromEntries(plain) } };
  });
}

/** A number with a decimal point and without separators of thousands. Undefined: the cell is not a number. */
export function withPoint(cell: string, sign: "." | ","): string | undefined {
  const pointed = sign === "," ? cell.replace(/[.,]/g, (one) => (one === "," ? "." : ",")) : cell;
  return WITH_POINT.test(pointed) ? pointed.replaceAll(",", "") : undefined;
}

/** Removes blanks and apostrophes between thousands: neither is ever a decimal sign. */
export function ungrouped(cell: string): string {
  const text = cell.trim();
  return /^[+-]?\d{1,3}([\s'’]\d{3})+([.,]\d*)?$/.test(text) ? text.replaceAll(/[\s'’]/g, "") : text;
}

/** Undefined: the cell has no decimal sign, or is not a number. */
export function decimalSignOf(cell: string): "." | "," | "either" | undefined {
  if (EITHER.test(cell)) return "either";
  if (!/^[+-]?[\d.,]+(e[+-]?\d+)?$/i.test(cell)) return undefined;
  const signs = (cell.match(/[.,]/g) ?? []) as ("." | ",")[];
  // A sign that occurs twice in a number separates thousands.
  const isGroup = signs.length > 1 && new Set(signs).size === 1;
  return isGroup ? (signs[0] === "." ? "," : ".") : signs.at(-1);
}
