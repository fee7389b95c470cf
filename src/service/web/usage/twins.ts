import type { GroupBy } from "../../../domain/usage/record.ts";
import { dimensionOf } from "../../../domain/usage/record.ts";
import { DEPLOYMENT, DIMENSIONS } from "../../../store/db/dimensions.ts";
import { meterOfCounted } from "../../../store/figures/counted.ts";
import { type Html, html } from "../html.ts";
import { twin } from "../parts/text.ts";
import type { Question } from "./question.ts";

/** The same figures for those who ask Postgres or the command line. */
export function twins(question: Question, { masked }: { masked: boolean }): Html {
  return html`<details class="twins"><summary>The same in SQL and on the command line</summary>
    <pre><code>${sqlOf(question, { masked })}</code></pre>
    ${twin(exportOf(question, { masked }))}</details>`;
}

/** A statement that any reader may run. */
function sqlOf(
  { source, by, range, per, measure, currency, workspace }: Question,
  { masked }: { masked: boolean },
): string {
  const { id, name } = viewDimension({ by, measure }) === "deployment" ? DEPLOYMENT : DIMENSIONS[by];
  const column = columnOf(measure);
  const columns = [id, ...(name === undefined ? [] : [name])].join(", ");
  const time = timeOf({ measure, per });
  const zone = time === "usage_hour" ? "timestamptz " : "date ";
  const end = time === "usage_hour" ? " 00:00Z" : "";
  return [
    `SELECT ${columns}, sum(${column}) AS ${column}`,
    `FROM reporting.${viewOf({ by, measure, per, masked })}`,
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

type Which = Pick<Question, "measure" | "per">;

function viewOf({ by, measure, per, masked }: Which & { by: GroupBy; masked: boolean }): string {
  const meter = measure === "cost" ? "traces" : meterOfCounted(measure);
  const kind = measure === "cost" ? "cost" : meter === "deployments" ? "deployment_usage" : "usage";
  const dimension = viewDimension({ by, measure });
  return `fct_${kind}_${dimension}${meter === "longlived" ? "_by_tier" : ""}_${timeOf({ measure, per }) === "usage_hour" ? "hourly" : "daily"}${masked && by === "user" ? "_masked" : ""}`;
}

function viewDimension({ by, measure }: { by: GroupBy; measure: Question["measure"] }): string {
  return measure === "cost" ? by : dimensionOf(meterOfCounted(measure), by);
}

/** Of the views. */
function columnOf(measure: Question["measure"]): string {
  if (measure === "cost") return "estimated_cost";
  return measure === "longlived" ? "traces" : measure;
}

function timeOf({ measure, per }: Which): "usage_hour" | "usage_date" {
  return measure === "traces" && per === "hour" ? "usage_hour" : "usage_date";
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** As a shell takes it. */
function typed(text: string): string {
  return /^[\w.:/=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
