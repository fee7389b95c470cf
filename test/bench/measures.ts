/** One line of the table of `npm run bench -- --all`: lower is better. Low and high are those of the rounds. */
export interface Measure {
  /** Stays the same from release to release. */
  readonly name: string;
  /** What 1 stands for: a floor of the same run, or a unit. */
  readonly of: string;
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

/** Of one value for each round. */
export function measureOf(name: string, of: string, values: readonly number[]): Measure {
  return { name, of, median: median(values), low: Math.min(...values), high: Math.max(...values) };
}

/** Hands them to `npm run bench -- --all`, if that is what started this process. */
export function hand(measures: readonly Measure[]): void {
  process.send?.({ measures });
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const [low, high] = [sorted[Math.ceil(middle) - 1] ?? Number.NaN, sorted[Math.floor(middle)] ?? Number.NaN];
  return (low + high) / 2;
}

const HEAD = "| measure | 1 is | median | spread |\n| --- | --- | --- | --- |\n";

export function asMarkdown(measures: readonly Measure[]): string {
  const lines = measures.map(
    ({ name, of, median, low, high }) =>
      `| ${name} | ${of} | ${short(median)} | ${short(low)} to ${short(high)} |\n`,
  );
  return HEAD + lines.join("");
}

/** Medians by name, of a text that `asMarkdown` wrote. */
export function readMarkdown(text: string): Map<string, number> {
  const [, body = ""] = text.split(HEAD);
  const rows = body.split("\n\n")[0]?.trim().split("\n") ?? [];
  return new Map(
    rows.map((row) => {
      const [, name = "", , median] = row.split("|").map((cell) => cell.trim());
      return [name, Number(median)];
    }),
  );
}

/** Three digits, and whole from a hundred on. */
function short(value: number): string {
  return value >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
}
