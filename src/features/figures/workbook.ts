import type { SheetData, Cell as Written } from "write-excel-file/node";
import { loadOptional } from "../../core/base/optional.ts";
import { addDays } from "../../core/domain/time/days.ts";
import { maskedActor } from "../../core/store/work/operator-actions.ts";
import type { Bill } from "../costs/bill.ts";
import { billFile } from "../costs/bill-file.ts";
import { type Cell, dayCell, type Table } from "../export/table-file.ts";
import { cellsOf, idLines, trendLines } from "./files.ts";
import type { Note } from "./notes.ts";
import { idWord, titleOf } from "./question.ts";
import type { Report } from "./report.ts";
import { unitOf } from "./tables.ts";

interface Contents {
  readonly report: Report;
  readonly notes: readonly Note[];
  readonly bill: Bill | undefined;
}

export async function workbookOf(
  { report, notes, bill }: Contents,
  { now, masked }: { now: number; masked: boolean },
): Promise<Buffer> {
  const tables = [
    { sheet: titleOf(report.question), table: idLines(report) },
    { sheet: "Trend", table: trendLines(report) },
    ...(bill === undefined
      ? []
      : [{ sheet: "Bill", table: billFile([masked ? withoutCloser(bill) : bill]) }]),
    { sheet: "About", table: aboutLines(report, notes, { now, masked }) },
  ];
  // Loading the library takes time, and most processes write no workbook.
  const { default: writeWorkbook } = await loadOptional(() => import("write-excel-file/node"));
  const sheets = tables.map(({ sheet, table }) => ({ sheet, stickyRowsCount: 1, ...sheetOf(table) }));
  return writeWorkbook(sheets).toBuffer();
}

/** A name may be an e-mail address. */
function withoutCloser({ closed, ...bill }: Bill): Bill {
  const by = closed?.by == null ? null : maskedActor(closed.by);
  return { ...bill, closed: closed === null ? null : { ...closed, by } };
}

function aboutLines(
  report: Report,
  notes: readonly Note[],
  { now, masked }: { now: number; masked: boolean },
): Table {
  const { question, lines, total, workspaces } = report;
  const { source, workspace, range, per, measure, by } = question;
  const isEmpty = range.from === range.to;
  const [whole, loaded, state] = cellsOf(total.sum);
  const said = [
    ...notes.map(({ text }) => text),
    ...(measure === "cost" ? ["Costs are an estimate from imported prices, and no invoice."] : []),
    ...(lines.some(({ kind }) => kind === "rest")
      ? ["The first ids have a line each. The line The rest is the sum of all others."]
      : []),
    ...(masked && by === "user" ? ["Addresses of users are masked."] : []),
  ];
  const rows: (readonly [string, Cell])[] = [
    ["Contents", titleOf(question)],
    ["Source", source.slug],
    ["Workspace", workspace === undefined ? `all (${workspaces})` : (workspace.name ?? workspace.id)],
    ["First day", isEmpty ? null : dayCell(range.from)],
    ["Last day, included", isEmpty ? null : dayCell(addDays(range.to, -1))],
    ["Days and times", "UTC. The days in the columns to and before_to are not included."],
    ["Dimension", idWord(question)],
    ["Measure", measure === "cost" ? `estimated cost, ${unitOf(report)}` : unitOf(report)],
    ["Trend per", per],
    ["As of", { at: new Date(now).toISOString(), per: "second" }],
    ["Total", whole],
    ["Total of what is loaded", loaded],
    ["State", state],
    ["Empty figures", "Not zero: a part is not loaded. The column that ends with _loaded has the rest."],
    ...said.map((text) => ["Note", text] as const),
  ];
  return { header: ["Field", "Value"], rows };
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
