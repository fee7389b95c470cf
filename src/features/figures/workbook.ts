import { addDays } from "../../core/domain/time/days.ts";
import { maskedActor } from "../../core/store/work/operator-actions.ts";
import type { Bill } from "../costs/bill.ts";
import { billFile } from "../costs/bill-file.ts";
import { type Cell, dayCell, type Table } from "../export/table-file.ts";
import { asWorkbook } from "../export/workbook-file.ts";
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
    { sheet: titleOf(report.question), table: idLines(report, report.lines) },
    { sheet: "Trend", table: trendLines(report, report.lines) },
    ...(bill === undefined
      ? []
      : [{ sheet: "Bill", table: billFile([masked ? withoutCloser(bill) : bill]) }]),
    { sheet: "About", table: aboutLines(report, notes, { now, masked }) },
  ];
  return asWorkbook(tables);
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
