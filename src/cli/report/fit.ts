export type Cell = string | number | null;
type Rows = readonly (readonly Cell[])[];

/** Without the columns in which nothing but zero, or nothing at all, stands. */
export function withoutZeros(head: readonly string[], rows: Rows): [head: string[], rows: Cell[][]] {
  const isKept = head.map((_, at) => rows.some((row) => ![0, null, "-"].includes(row[at] ?? null)));
  const kept = <T>(row: readonly T[]) => row.filter((_, at) => isKept[at]);
  return [kept(head), rows.map(kept)];
}

/** Between two columns. */
const GAP = 2;
/** A text that is cut shorter names nothing. */
const LEAST = 8;

/**
 * Cuts the longest texts of a table, such as ids, until it is as wide as a terminal. A terminal that breaks lines shows no
 * table at all. Pipes, files and `--json` get all of them.
 */
export function fitted(rows: readonly string[][], columns: number | undefined): string[][] {
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

/**
 * The only row of a table that no terminal is wide enough for: a line for each column, since a person copies ids from it.
 * Undefined if it fits, or if there are more rows.
 */
export function asLines([head = [], ...rows]: readonly string[][], columns = Infinity): string | undefined {
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
