import { CsvError, type Options, parse } from "csv-parse/sync";
import { refuseGiven } from "../core/base/given-file.ts";
import { nearest } from "../core/base/spelling.ts";

export interface CsvRow {
  readonly line: number;
  readonly cells: Readonly<Record<string, string>>;
}

/** Reads a CSV file with a header, which `headed` checks and names. Error: `file_invalid`. */
export function csvRows(
  file: string,
  content: string,
  { headed, trim = false }: { headed: (names: string[]) => string[]; trim?: boolean },
): CsvRow[] {
  const options: Options = { bom: true, columns: headed, info: true, skip_empty_lines: true, trim };
  try {
    const rows = parse(content, options) as unknown as {
      record: Record<string, string>;
      info: { lines: number };
    }[];
    return rows.map(({ record, info }) => ({ line: info.lines, cells: record }));
  } catch (error) {
    if (error instanceof CsvError) refuseGiven(file, [`line ${Number(error.lines ?? 1)}: ${error.message}`]);
    throw error;
  }
}

export function unknownColumn(name: string, known: readonly string[]): string {
  const near = nearest(name, known);
  const hint = near === undefined ? `columns are ${known.join(", ")}` : `did you mean ${near}?`;
  return `there is no column ${JSON.stringify(name)}; ${hint}`;
}
