import type { SheetData, Cell as Written } from "write-excel-file/node";
import { loadOptional } from "../../core/base/optional.ts";
import type { Cell, Table } from "./table-file.ts";

/** An XLSX file with a sheet for each table. */
export async function asWorkbook(tables: readonly { sheet: string; table: Table }[]): Promise<Buffer> {
  // Loading the library takes time, and most processes write no workbook.
  const { default: writeWorkbook } = await loadOptional(() => import("write-excel-file/node"));
  const sheets = tables.map(({ sheet, table }) => ({ sheet, stickyRowsCount: 1, ...sheetOf(table) }));
  return writeWorkbook(sheets).toBuffer();
}

const WIDEST = 60;

function sheetOf({ header, rows }: Table): { data: SheetData; columns: { width: number }[] } {
  const lines = rows.map((row) => row.map(cellOf));
  return {
    data: [
      header.map((value) => ({ value, fontWeight: "bold" as const })),
      ...lines.map((line) => line.map(({ cell }) => cell)),
    ],
    columns: header.map((head, n) => ({
      width: Math.min(WIDEST, 2 + Math.max(head.length, ...lines.map((line) => line[n]?.length ?? 0))),
    })),
  };
}

const FORMAT = {
  second: "yyyy-mm-dd hh:mm:ss",
  hour: "yyyy-mm-dd hh:mm",
  day: "yyyy-mm-dd",
  month: "yyyy-mm",
};
/** A double is exact for decimals with this number of digits, which is also all that Excel shows. */
const MOST_DIGITS = 15;

function cellOf(cell: Cell): { cell: Written; length: number } {
  if (cell === null) return { cell: null, length: 0 };
  if (typeof cell === "number") return { cell, length: String(cell).length };
  if (typeof cell === "string") return { cell: { value: xmlText(cell), type: String }, length: cell.length };
  if ("at" in cell) {
    const format = FORMAT[cell.per];
    return { cell: { value: new Date(cell.at), type: Date, format }, length: format.length };
  }
  const { decimal } = cell;
  const length = Math.ceil((decimal.length * 4) / 3);
  if (decimal.replace(/\D/g, "").replace(/^0+|0+$/g, "").length > MOST_DIGITS)
    return { cell: { value: decimal, type: String, align: "right" }, length };
  const format = decimal.includes(".") ? "#,##0.00########" : "#,##0";
  return { cell: { value: Number(decimal), type: Number, format }, length };
}

/** Matches characters that XML cannot contain or that the library drops, and text that would be read as an escape. */
const ESCAPED = /[^\P{Cc}\t\n]|\p{Noncharacter_Code_Point}|\uFFFD|_(?=x[\dA-Fa-f]{4}_)/gu;

/** XLSX writes `_x000D_` for a carriage return. */
function xmlText(text: string): string {
  const safe = text.replace(ESCAPED, escaped);
  // The library looks texts up in an object, which already has `constructor` and others.
  return safe in Object.prototype ? `${escaped(safe.slice(0, 1))}${safe.slice(1)}` : safe;
}

function escaped(characters: string): string {
  const units = Array.from({ length: characters.length }, (_, n) => characters.charCodeAt(n));
  return units.map((unit) => `_x${unit.toString(16).toUpperCase().padStart(4, "0")}_`).join("");
}
