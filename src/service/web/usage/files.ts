import { amountText } from "../../../domain/usage/amount.ts";
import { type Cell, csv } from "../parts/csv.ts";
import type { Figure, Line, Report } from "./report.ts";
import { bucketShown, unitOf } from "./tables.ts";
import { lineTitle, stateWord } from "./words.ts";

/** Columns of a figure: the sum, empty unless all of it is loaded; what is loaded of it; and where it stands. */
const FIGURE = (name: string) => [name, `${name}_loaded`, "state"];

export function fileName({ question }: Report, table: "ids" | "time"): string {
  const { measure, by, asked } = question;
  const safe = question.source.slug.replace(/[^\w.-]/g, "_");
  return `usage-${safe}-${measure}-by-${by}-${asked.from}-to-${asked.to}${table === "time" ? "-course" : ""}.csv`;
}

/** The lines of the table, with the same names and numbers. */
export function idsAsCsv(report: Report): string {
  const { question, lines, total, before } = report;
  const header = [
    ...[
      "source_id",
      "from",
      "to",
      "by",
      "id",
      "name",
      ...FIGURE(columnOf(report)),
      "share_percent",
      "change_percent",
    ],
    ...["before_from", "before_to", `before_${columnOf(report)}`],
  ];
  return csv(
    header,
    [...lines, total].map((line) => [
      ...[question.source.slug, question.range.from, question.range.to, question.by],
      ...namesOf(line, report),
      ...cellsOf(line.sum),
      ...[line.share, line.change, before.from, before.to],
      line.before.isComplete ? { decimal: amountText(line.before.amount) } : null,
    ]),
  );
}

/** The same lines by bucket. */
export function courseAsCsv(report: Report): string {
  const { question, lines, total, buckets } = report;
  const header = ["source_id", question.per, "by", "id", "name", ...FIGURE(columnOf(report))];
  return csv(
    header,
    buckets.flatMap(({ at }, n) =>
      [...lines, total].map((line) => [
        ...[question.source.slug, bucketShown(at, question.per), question.by],
        ...namesOf(line, report),
        ...cellsOf(line.course[n] as Figure),
      ]),
    ),
  );
}

function columnOf(report: Report): string {
  const { measure } = report.question;
  if (measure === "cost") return `estimated_cost_${unitOf(report).toLowerCase()}`;
  return measure === "longlived" ? "longlived_traces" : measure;
}

/** Id and name; a line that stands for several ids has a name only. */
function namesOf(line: Line, { question }: Report): Cell[] {
  return line.kind === "id"
    ? [line.id, line.name]
    : [line.kind === "none" ? "(none)" : null, lineTitle(line, question)];
}

function cellsOf(figure: Figure): Cell[] {
  const decimal = { decimal: amountText(figure.amount) };
  const isNothing = !figure.isComplete && figure.amount === 0n;
  return [figure.isComplete ? decimal : null, isNothing ? null : decimal, stateWord(figure)];
}
