import { amountText } from "../../../domain/usage/amount.ts";
import { dimensionOf } from "../../../domain/usage/record.ts";
import { type Cell, dayCell, type Table } from "../../../pipeline/export/table-file.ts";
import { coreSchemaOf, DIMENSIONS, USAGE_VIEWS } from "../../../store/db/dimensions.ts";
import { meterOfCounted } from "../../../store/figures/counted.ts";
import { type Html, html, twin } from "../parts.ts";
import type { Question } from "./question.ts";
import type { Figure, Line, Report } from "./report.ts";
import { lineTitle, stateWord, unitOf } from "./tables.ts";

const FIGURE = (name: string) => [name, `${name}_loaded`, "state"];

export function fileName(
  { question }: Report,
  ending: "csv" | "xlsx",
  table: "ids" | "time" = "ids",
): string {
  const { measure, by, asked } = question;
  const safe = question.source.slug.replace(/[^\w.-]/g, "_");
  return `usage-${safe}-${measure}-by-${by}-${asked.from}-to-${asked.to}${table === "time" ? "-course" : ""}.${ending}`;
}

export function idLines(report: Report): Table {
  const { question, lines, total } = report;
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
    rows: [...lines, total].map((line) => [
      question.source.slug,
      dayCell(question.range.from),
      dayCell(question.range.to),
      question.by,
      ...namesOf(line, report),
      ...cellsOf(line.sum),
      line.share,
      // Of a change that leaves today out, the amount beside it is not what is compared.
      ended.to < range.to ? null : line.change,
      dayCell(before.from),
      dayCell(before.to),
      line.before.isComplete ? { decimal: amountText(line.before.amount) } : null,
    ]),
  };
}

export function courseLines(report: Report): Table {
  const { question, lines, total, buckets } = report;
  return {
    header: ["source_id", question.per, "by", "id", "name", ...FIGURE(columnOf(report))],
    rows: buckets.flatMap(({ at }, n) =>
      [...lines, total].map((line) => [
        question.source.slug,
        { at, per: question.per },
        question.by,
        ...namesOf(line, report),
        ...cellsOf(line.course[n] as Figure),
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
  return [figure.isComplete ? decimal : null, isNothing ? null : decimal, stateWord(figure)];
}

export function twins(question: Question, { masked }: { masked: boolean }): Html {
  return html`<details class="twins"><summary>The same in SQL and on the command line</summary>
    <pre><code>${sqlOf(question, { masked })}</code></pre>
    ${twin(exportOf(question, { masked }))}</details>`;
}

function sqlOf(
  { source, by, range, per, measure, currency, workspace }: Question,
  { masked }: { masked: boolean },
): string {
  const { id, name } = columnsOf({ by, measure });
  const column = viewColumn(measure);
  const columns = [id, ...(name === undefined ? [] : [name])].join(", ");
  const time = timeOf({ measure, per });
  const zone = time === "usage_hour" ? "timestamptz " : "date ";
  const end = time === "usage_hour" ? " 00:00Z" : "";
  const view = viewOf({ by, measure, per, masked });
  return [
    `SELECT ${columns}, sum(${column}) AS ${column}`,
    `FROM ${coreSchemaOf(view)}.${view}`,
    `WHERE source_id = ${quoted(source.slug)}`,
    `  AND ${time} >= ${zone}'${range.from}${end}' AND ${time} < ${zone}'${range.to}${end}'`,
    ...(workspace === undefined ? [] : [`  AND workspace_id = ${quoted(workspace.id)}`]),
    ...(measure === "longlived" ? ["  AND trace_tier = 'longlived'"] : []),
    ...(measure === "cost" && currency !== undefined ? [`  AND currency = ${quoted(currency)}`] : []),
    `GROUP BY ${columns}`,
    `ORDER BY ${column} DESC NULLS LAST;`,
  ].join("\n");
}

function exportOf(
  { source, by, range, per, measure, currency, workspace }: Question,
  { masked }: { masked: boolean },
): string {
  return [
    `usage-etl export --view ${viewOf({ by, measure, per, masked })} --from ${range.from} --to ${range.to}`,
    `--where ${typed(`source_id=${source.slug}`)}`,
    ...(workspace === undefined ? [] : [`--workspace ${typed(workspace.id)}`]),
    ...(measure === "longlived" ? ["--where trace_tier=longlived"] : []),
    ...(measure === "cost" && currency !== undefined ? [`--where currency=${currency}`] : []),
  ].join(" ");
}

function columnsOf({ by, measure }: Pick<Question, "by" | "measure">): { id: string; name?: string } {
  if (by === "owner") return { id: "owner", name: "cost_center" };
  return DIMENSIONS[measure === "cost" ? by : dimensionOf(meterOfCounted(measure), by)];
}

type Which = Pick<Question, "by" | "measure" | "per">;

function viewOf({ by, measure, per, masked }: Which & { masked: boolean }): string {
  const meter = measure === "cost" ? "traces" : meterOfCounted(measure);
  const kind = measure === "cost" ? "cost" : (USAGE_VIEWS[meter] ?? "usage");
  const dimension = measure === "cost" || by === "owner" ? by : dimensionOf(meter, by);
  return `fct_${kind}_${dimension}${meter === "longlived" ? "_by_tier" : ""}_${timeOf({ measure, per }) === "usage_hour" ? "hourly" : "daily"}${masked && by === "user" ? "_masked" : ""}`;
}

function viewColumn(measure: Question["measure"]): string {
  if (measure === "cost") return "estimated_cost";
  return measure === "longlived" ? "traces" : measure;
}

function timeOf({ measure, per }: Pick<Which, "measure" | "per">): "usage_hour" | "usage_date" {
  return measure === "traces" && per === "hour" ? "usage_hour" : "usage_date";
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

function typed(text: string): string {
  return /^[\w.:/=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
