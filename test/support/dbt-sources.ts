import { STATUSES } from "../../src/core/domain/coverage/coverage-grid.ts";
import { DIFFERENCE_KINDS } from "../../src/core/domain/proof/difference.ts";
import { STRIDES } from "../../src/core/domain/time/stride.ts";
import { MEASURES, METER } from "../../src/core/domain/usage/meter.ts";
import { GROUPINGS } from "../../src/core/domain/usage/record.ts";
import { DIMENSIONS } from "../../src/core/store/db/dimensions.ts";
import { keyOf, timeColumnOf, type View, type ViewColumn } from "../../src/core/store/db/views.ts";

/** The sources of docs/dbt with comments and tests, and a test of their keys: `npm run schema` writes both from the views. */

/** By default a sync runs every 15 minutes. A day without one is an outage. */
const FRESHNESS = "{ warn_after: { count: 6, period: hour }, error_after: { count: 24, period: hour } }";

/**
 * The constraints of the tables prove the key of a stored record: each names its series and bucket once, and no two loaded
 * intervals of a scope overlap. Postgres needs minutes to see the same in millions of records.
 */
const PROVED = ["usage_record"];

/** A source of dbt has one schema. */
const SOURCES: Readonly<Record<string, string>> = { reporting: "usage", reporting_detail: "usage_detail" };

function sourceOf({ schema, name }: View): string {
  return `source('${SOURCES[schema]}', '${name}')`;
}

/**
 * dbt compares one time of a table with the clock. The newest of all would hide a source, or a dimension, that stalls while others
 * go on: so it is the oldest of them. Days are asked for in every sync, other strides by some sources only.
 */
const OLDEST_FETCH = `select min(fetched_at) from {{ this }} where stride = 'day'
{%- if var('usage_etl_sources', []) | length > 0 %} and source_id in ('{{ var("usage_etl_sources") | join("', '") }}'){% endif %}`;

/** `sources.yml` for dbt 1.12 or later: the views with their comments, tests and freshness. */
export function dbtSources(views: readonly View[]): string {
  const lines = ["# Made by `npm run schema` from the comments of the views.", "version: 2", "sources:"];
  for (const [schema, source] of Object.entries(SOURCES)) {
    lines.push(
      `  - name: ${source}`,
      "    database: \"{{ var('usage_etl_database', target.database) }}\"",
      `    schema: ${schema}`,
      "    tables:",
      ...views.filter((view) => view.schema === schema).flatMap((view) => linesOf(view, views)),
    );
  }
  return `${lines.join("\n")}\n`;
}

function linesOf(view: View, views: readonly View[]): string[] {
  const lines = [`      - name: ${view.name}`, `        description: ${scalar(view.comment)}`];
  if (view.name === "data_freshness") {
    lines.push(
      "        config:",
      `          loaded_at_query: ${scalar(OLDEST_FETCH)}`,
      `          freshness: ${FRESHNESS}`,
    );
  }
  lines.push("        columns:");
  for (const column of view.columns) {
    const { name, type, comment } = column;
    lines.push(`          - name: ${name}`);
    // Postgres folds unquoted names to lower case.
    if (name !== name.toLowerCase()) lines.push("            quote: true");
    lines.push(`            description: ${scalar(comment)}`, `            data_type: ${type}`);
    const tests = dbtTestsOf(view, column, views).map((line) => `              ${line}`);
    if (tests.length > 0) lines.push("            data_tests:", ...tests);
  }
  return lines;
}

/**
 * A dbt test that every key is unique; its rows are the keys that occur twice. dbt's own `unique` tests one column, but
 * these keys have several. Of large views it reads the newest time, since a key is made alike for all of it.
 */
export function dbtKeyTest(views: readonly View[]): string {
  const selects = views
    .filter((view) => keyOf(view).length > 1 && !PROVED.includes(view.name))
    .map((view) => {
      const columns = keyOf(view).map((name) => (name === name.toLowerCase() ? name : `"${name}"`));
      const newest = newestOf(view);
      return [
        `SELECT '${view.name}' AS view_name, count(*) AS rows_of_one_key`,
        `FROM {{ ${sourceOf(view)} }}`,
        ...(newest === undefined ? [] : [`WHERE ${newest}`]),
        `GROUP BY ${columns.join(", ")}`,
        "HAVING count(*) > 1",
      ].join("\n");
    });
  return `-- Made by \`npm run schema\` from the keys of the views.\n${selects.join("\nUNION ALL\n")}\n`;
}

/** YAML's double-quoted scalars are JSON strings. */
function scalar(text: string): string {
  return JSON.stringify(text);
}

/** These ids are null if a day or hour of the workspace is not loaded. */
const NULL_WHERE_MISSING = Object.values(DIMENSIONS)
  .map(({ id }) => id)
  .filter((id) => id !== DIMENSIONS.workspace.id);

/** Columns of keys that are null in what has no resource, or is the rest of a workspace. */
const NULL_OF_THE_REST: readonly string[] = [
  "owner_assignment.group_by",
  ...["fct_other_usage_daily", "fct_usage_by_id_hourly", "fct_usage_monthly", "fct_cost_by_id_daily"].map(
    (view) => `${view}.dimension_id`,
  ),
  ...["ResourceType", "ResourceId", "AllocatedMethodDetails"].map(
    (column) => `focus_1_4_cost_and_usage_by_resource.${column}`,
  ),
];

const TIERS = ["longlived", "shortlived"];
/** Values of a column; a column of one view stands behind the view's name. */
const ACCEPTED: Readonly<Record<string, readonly string[]>> = {
  coverage_status: STATUSES,
  tiers_status: ["inconsistent", ...STATUSES],
  trace_tier: TIERS,
  "usage_coverage_by_kind_daily.trace_tier": ["all", ...TIERS],
  "usage_reconciliation.trace_tier": ["all", ...TIERS],
  "usage_restatement.trace_tier": ["all", ...TIERS],
  "usage_late_change.trace_tier": ["all", ...TIERS],
  "usage_coverage_by_kind_daily.kind": [...new Set(Object.values(METER).map(({ kind }) => kind))],
  status: STATUSES,
  group_by: GROUPINGS,
  "dim_name.group_by": Object.keys(DIMENSIONS),
  "fct_other_usage_daily.group_by": Object.keys(DIMENSIONS).filter((one) => one !== "project"),
  "fct_other_usage_daily.measure": MEASURES.filter((one) => one !== "traces"),
  "fct_cost_by_id_daily.group_by": [
    ...GROUPINGS.filter((one) => one !== "workspace"),
    "deployment",
    "sandbox",
  ],
  "dim_tag.group_by": ["project", "deployment", "sandbox"],
  "dim_resource.group_by": ["deployment", "sandbox", "run_rule"],
  stride: STRIDES,
  // Restatements have a view of their own.
  kind: Object.keys(DIFFERENCE_KINDS).filter((kind) => kind !== "restated"),
  "backfill_status.state": ["running", "paused", "cancelled", "done"],
};

/** The part of a large view that is tested: its newest time. Others are tested whole. */
const NEWEST: Readonly<Record<string, string>> = {
  usage_date: "usage_date >= current_date - 45",
  x_UsageDate: '"x_UsageDate" >= current_date - 45',
  usage_hour: "usage_hour >= now() - interval '3 days'",
  period_start: "period_start >= now() - interval '3 days'",
};

/** Tests of a column as lines of dbt's `data_tests`. */
function dbtTestsOf(view: View, { name }: ViewColumn, views: readonly View[]): string[] {
  const key = keyOf(view);
  const isFact = view.name.startsWith("fct_");
  const tests: [name: string, given?: readonly string[]][] = [];
  const mayBeNull =
    (isFact && NULL_WHERE_MISSING.includes(name)) || NULL_OF_THE_REST.includes(`${view.name}.${name}`);
  if (key.includes(name) && !mayBeNull) tests.push(["not_null"]);
  if (key.length === 1 && key[0] === name) tests.push(["unique"]);
  const accepted = ACCEPTED[`${view.name}.${name}`] ?? ACCEPTED[name];
  if (accepted !== undefined)
    tests.push(["accepted_values", ["values:", ...accepted.map((value) => `  - ${value}`)]]);
  const parent = isFact ? parentOf(view, name) : undefined;
  const dimension = views.find((one) => one.name === parent);
  if (dimension !== undefined)
    tests.push(["relationships", [`to: ${sourceOf(dimension)}`, `field: ${name}`]]);
  return tests.flatMap(([test, given]) => testItem(test, given, newestOf(view)));
}

/** The view with one row for each value of a column of facts. */
function parentOf(view: View, column: string): string | undefined {
  // Deployment usage may begin before the first day of dim_date.
  if (column === "usage_date") return view.name === "fct_other_usage_daily" ? undefined : "dim_date";
  const found = Object.entries(DIMENSIONS).find(([, { id }]) => id === column);
  return found && `dim_${found[0]}`;
}

function newestOf(view: View): string | undefined {
  const time = timeColumnOf(view)?.name ?? "";
  // Changes and differences are few, and of any age.
  if (time === "period_start" && view.name !== "usage_record") return undefined;
  return keyOf(view).includes(time) ? NEWEST[time] : undefined;
}

function testItem(name: string, given: readonly string[] = [], where: string | undefined): string[] {
  const parts = [
    ...(given.length === 0 ? [] : ["arguments:", ...given.map((line) => `  ${line}`)]),
    ...(where === undefined ? [] : ["config:", `  where: ${where.startsWith('"') ? `'${where}'` : where}`]),
  ];
  return parts.length === 0 ? [`- ${name}`] : [`- ${name}:`, ...parts.map((line) => `    ${line}`)];
}
