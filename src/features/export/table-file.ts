import { Option } from "commander";
import type { Per } from "../../core/store/figures/records.ts";
import { FORMULA_SIGNS } from "./view-rows.store.ts";

export type Cell = string | number | null | { readonly decimal: string } | Time;

interface Time {
  /** Start of a day, hour or month, or an instant to the second. */
  readonly at: string;
  readonly per: Per | "second";
}

export interface Table {
  readonly header: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
}

export function dayCell(at: string): Cell {
  return { at, per: "day" };
}

export function decimalCell(text: string | null | undefined): Cell {
  return text == null ? null : { decimal: text };
}

/** Without this mark, Excel reads UTF-8 in the code page of its country. */
export const BYTE_ORDER_MARK = "\uFEFF";

/** `csv`: the option that makes the output CSV, and its value. */
export function bomOption(csv: Readonly<Record<string, unknown>>): Option {
  return new Option("--bom", "CSV that begins with a byte order mark, for Excel").implies(csv);
}

/** RFC 4180 with `\n`. A text that a spreadsheet would run as a formula begins with an added `'`. */
export function asCsv({ header, rows }: Table): string {
  return [header, ...rows].map((cells) => `${cells.map(written).join(",")}\n`).join("");
}

function written(cell: Cell): string {
  if (cell === null) return "";
  if (typeof cell === "number") return String(cell);
  if (typeof cell === "object") return "at" in cell ? bucketShown(cell.at, cell.per) : cell.decimal;
  const guarded = FORMULA_SIGNS.some((sign) => cell.startsWith(sign)) ? `'${cell}` : cell;
  return csvCell(guarded);
}

/** Null is an empty cell, an empty text is `""`. Blanks at the ends are quoted, because some readers drop them. */
export function csvCell(text: string | null): string {
  if (text === null) return "";
  return text === "" || /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function bucketShown(at: string, per: Time["per"]): string {
  if (per === "month") return at.slice(0, 7);
  return per === "hour" ? `${at.slice(0, 10)} ${at.slice(11, 16)}` : at;
}
