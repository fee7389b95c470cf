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
  const widths = (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)));
  const excess = () => widths.reduce((sum, width) => sum + width + GAP, -GAP) - (columns ?? Infinity);
  for (let widest = Math.max(...widths); excess() > 0 && widest > LEAST; widest = Math.max(...widths))
    widths[widths.indexOf(widest)] = widest - 1;
  return rows.map((row) =>
    row.map((text, at) => {
      const width = widths[at] ?? text.length;
      return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
    }),
  );
}
