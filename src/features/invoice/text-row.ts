/** A row of a PDF or of a copied table. Cells are in the order of their places. */
export interface TextRow {
  readonly place: string;
  readonly cells: readonly TextCell[];
  /** The row is so close to the row above that it continues a text of it. */
  readonly isContinuation: boolean;
}

export interface TextCell {
  readonly text: string;
  /** Left and right end. */
  readonly from: number;
  readonly to: number;
}

export function rowText({ cells }: Pick<TextRow, "cells">): string {
  return cells.map(({ text }) => text).join(" ");
}

/** Cells of tabs and Markdown are as wide as this, so that each is below its head. */
const WIDE = 1_000;

/** Rows of a copied table. Tabs, `|` or two blanks separate cells; a cell of blanks stays an empty place. */
export function textRows(content: string): TextRow[] {
  return content.split(/\r\n|\n|\r/).flatMap((line, n) => {
    const cells = cellsOf(line.replaceAll("\u00a0", " "));
    return cells.length === 0 ? [] : [{ place: `line ${n + 1}`, cells, isContinuation: false }];
  });
}

function cellsOf(line: string): TextCell[] {
  if (/^[\s|:+=-]*$/.test(line)) return [];
  const separator = ["\t", "|"].find((one) => line.includes(one));
  if (separator !== undefined) {
    const body = separator === "|" ? line.trim().replace(/^\||\|$/g, "") : line;
    return body.split(separator).flatMap((cell, at) => {
      const text = cell.trim().replace(/\s+/g, " ");
      return text === "" ? [] : [{ text, from: at * WIDE, to: at * WIDE + WIDE / 2 }];
    });
  }
  return [...line.matchAll(/\S+(?: \S+)*/g)].map(({ 0: text, index }) => ({
    text,
    from: index,
    to: index + text.length,
  }));
}
