import { FORMULA_SIGNS } from "../../../store/export/view-rows.ts";

/** A cell: a number or an exact decimal is written as it is, null is empty. */
export type Cell = string | number | bigint | null | { readonly decimal: string };

/** RFC 4180 with `\n`, as the command `export` writes it: texts that a spreadsheet would run as a formula get a `'` in front. */
export function csv(header: readonly string[], rows: readonly (readonly Cell[])[]): string {
  return [header, ...rows].map((cells) => `${cells.map(written).join(",")}\n`).join("");
}

function written(cell: Cell): string {
  if (cell === null) return "";
  if (typeof cell !== "string") return typeof cell === "object" ? cell.decimal : String(cell);
  const guarded = FORMULA_SIGNS.some((sign) => cell.startsWith(sign)) ? `'${cell}` : cell;
  return guarded === "" || /[",\r\n]/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded;
}
