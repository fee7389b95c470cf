/**
 * Terminal controls (with C1, such as CSI), and characters that reorder or end a line. Line feeds and tabs are allowed,
 * since our layout needs them.
 */
const CONTROLS = /(?![\n\t])[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;
const BREAKS = /[\n\t]/g;

/** Escapes characters that control a terminal. Controls become JSON escapes, so JSON keeps its meaning. */
export function printable(text: string): string {
  return text.replace(CONTROLS, escaped);
}

export function printableLine(value: unknown): string {
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  return printable(text).replace(BREAKS, escaped);
}

function escaped(control: string): string {
  return `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** For viewers and masked AI clients: hides e-mail addresses, which an error of the platform may contain. */
export function withoutAddresses(text: string): string {
  return text.replace(/[^\s@"'<>,;:()]+@[^\s@"'<>,;:()]+/g, "(address)");
}

export function counted(number: number, thing: string): string {
  const ending = number === 1 ? "" : /(s|x|ch)$/.test(thing) ? "es" : "s";
  return `${number.toLocaleString("en-US")} ${thing}${ending}`;
}

const MOST_LINES = 12;

/** Returns `line 4`, or `lines 3, 5, 7 to 12 and 1,700 more`. `lines` must ascend. */
export function linesShown(lines: readonly number[]): string {
  const runs: [first: number, last: number][] = [];
  for (const line of lines) {
    const run = runs.at(-1);
    if (run !== undefined && run[1] === line - 1) run[1] = line;
    else runs.push([line, line]);
  }
  const shown = runs.slice(0, MOST_LINES);
  const many = shown.reduce((sum, [first, last]) => sum + last - first + 1, 0);
  const parts = shown.map(([first, last]) =>
    first === last ? `${first}` : last === first + 1 ? `${first}, ${last}` : `${first} to ${last}`,
  );
  const more = lines.length > many ? ` and ${(lines.length - many).toLocaleString("en-US")} more` : "";
  return `${lines.length === 1 ? "line" : "lines"} ${parts.join(", ")}${more}`;
}
