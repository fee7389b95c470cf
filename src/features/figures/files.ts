import { FIGURE_STATUS } from "../../core/domain/proof/statuses.ts";
import { amountText } from "../../core/domain/usage/amount.ts";
import { type Cell, dayCell, type Table } from "../export/table-file.ts";
import type { Figure, Line, Report } from "./report.ts";
import { lineTitle, statusOf, unitOf } from "./tables.ts";

const FIGURE = (name: string) => [name, `${name}_loaded`, "state"];

export function fileName(
  { question }: Report,
  ending: "csv" | "xlsx",
  table: "ids" | "time" = "ids",
): string {
  const { measure, by, requested } = question;
  const safe = question.source.slug.replace(/[^\w.-]/g, "_");
  return `usage-${safe}-${measure}-by-${by}-${requested.from}-to-${requested.to}${table === "time" ? "-trend" : ""}.${ending}`;
}

/** `lines`: the total too, unless the table is to be summed. */
export function idLines(report: Report, lines: readonly Line[] = [...report.lines, report.total]): Table {
  const { question } = report;
  const { range, ended, before } = question;
  return {
    header: [
      "source_id",
      "from",
      "to",
      "by",
      "id",
      "name",
      ...FIGURE(columnOf(report)),
      "share_percent",
      "change_percent",
      "before_from",
      "before_to",
      `before_${columnOf(report)}`,
    ],
    rows: lines.map((line) => [
      question.source.slug,
      dayCell(question.range.from),
      dayCell(question.range.to),
      question.by,
      ...namesOf(line, report),
      ...cellsOf(line.sum),
      line.share,
      // If today is left out, `change` does not belong to the line's amount.
      ended.to < range.to ? null : line.change,
      dayCell(before.from),
      dayCell(before.to),
      line.before.isComplete ? { decimal: amountText(line.before.amount) } : null,
    ]),
  };
}

export function trendLines(report: Report, lines: readonly Line[] = [...report.lines, report.total]): Table {
  const { question, buckets } = report;
  return {
    header: ["source_id", question.per, "by", "id", "name", ...FIGURE(columnOf(report))],
    rows: buckets.flatMap(({ at }, n) =>
      lines.map((line) => [
        question.source.slug,
        { at, per: question.per },
        question.by,
        ...namesOf(line, report),
        ...cellsOf(line.trend[n] as Figure),
      ]),
    ),
  };
}

function columnOf(report: Report): string {
  const { measure } = report.question;
  if (measure === "cost") return `estimated_cost_${unitOf(report).toLowerCase()}`;
  return measure === "longlived" ? "longlived_traces" : measure;
}

function namesOf(line: Line, { question }: Report): Cell[] {
  if (line.kind === "id") return [line.id, line.name];
  const isNamed = line.kind === "none" || line.kind === "adjustment";
  return [isNamed ? `(${line.kind})` : null, lineTitle(line, question)];
}

export function cellsOf(figure: Figure): [Cell, Cell, string] {
  const decimal = { decimal: amountText(figure.amount) };
  const isNothing = !figure.isComplete && figure.amount === 0n;
  return [
    figure.isComplete ? decimal : null,
    isNothing ? null : decimal,
    FIGURE_STATUS[statusOf(figure)].word,
  ];
}
