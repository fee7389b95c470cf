import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { STATUSES } from "../../src/core/domain/coverage/coverage-grid.ts";
import { GROUPINGS } from "../../src/core/domain/usage/record.ts";
import { keyOf, timeColumnOf, type View, type ViewColumn } from "../../src/core/store/db/views.ts";

/** Parts of docs/dbt that `npm run schema` writes from the views. */
const MODELS = new URL("../../docs/dbt/models/", import.meta.url);

/** The generated files, by their path in docs/dbt. */
export function dbtFiles(views: readonly View[]): Map<string, string> {
  return new Map([
    ["models/sources.yml", dbtSources(views)],
    ["models/staging/daily.yml", dbtStaging(views)],
    ["models/exposures.yml", dbtExposures(views)],
    ["tests/usage_keys_are_unique.sql", dbtKeyTest(views)],
  ]);
}

const FRESHNESS = "{ warn_after: { count: 6, period: hour }, error_after: { count: 24, period: hour } }";

const PROVED = ["usage_record"];

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

function dbtSources(views: readonly View[]): string {
  const read = new Set(sourcesIn("**/*.sql").map(([, , view]) => view));
  const lines = ["# Made by `npm run schema` from the comments of the views.", "version: 2", "sources:"];
  for (const [schema, source] of Object.entries(SOURCES)) {
    lines.push(
      `  - name: ${source}`,
      "    database: \"{{ var('usage_etl_database', target.database) }}\"",
      `    schema: ${schema}`,
      "    tables:",
      ...views.filter((view) => view.schema === schema).flatMap((view) => linesOf(view, read.has(view.name))),
    );
  }
  return `${lines.join("\n")}\n`;
}

function sourcesIn(pattern: string): string[][] {
  const files = globSync(pattern, { cwd: fileURLToPath(MODELS) });
  return files.flatMap((file) => [
    ...readFileSync(new URL(file, MODELS), "utf8").matchAll(/source\('(\w+)', '(\w+)'\)/g),
  ]);
}

function linesOf(view: View, isRead: boolean): string[] {
  const lines = [`      - name: ${view.name}`, `        description: ${scalar(view.comment)}`];
  if (view.name === "data_freshness")
    lines.push(
      "        config:",
      `          loaded_at_query: ${scalar(OLDEST_FETCH)}`,
      `          freshness: ${FRESHNESS}`,
    );
  if (isMasked(view)) lines.push(`        config: { enabled: "{{ not var('usage_etl_masked', false) }}" }`);
  lines.push("        columns:");
  for (const column of view.columns)
    lines.push(`          - ${columnOf(column, isRead ? dbtTestsOf(view, column) : [])}`);
  return lines;
}

function columnOf({ name, type, precision, scale, comment }: ViewColumn, tests: readonly string[]): string {
  const exact = precision === null ? type : scalar(`${type}(${precision},${scale})`);
  const parts = [
    `name: ${name}`,
    ...(name === name.toLowerCase() ? [] : ["quote: true"]),
    `data_type: ${exact}`,
    `description: ${scalar(comment)}`,
    ...(tests.length === 0 ? [] : [`data_tests: [${tests.join(", ")}]`]),
  ];
  return `{ ${parts.join(", ")} }`;
}

/** Readers with masked addresses cannot read it. */
const isMasked = ({ columns }: View) => columns.some(({ name }) => name === "user_email");

function dbtStaging(views: readonly View[]): string {
  const lines = ["# Made by `npm run schema` from the comments of the views.", "version: 2", "models:"];
  for (const groupBy of GROUPINGS) {
    const model = `stg_usage_etl__${groupBy}_daily`;
    const text = readFileSync(new URL(`staging/${model}.sql`, MODELS), "utf8");
    const [, selected = "", name] = /^select (.*)\nfrom \{\{ source\('usage', '(\w+)'\)/.exec(text) ?? [];
    const view = views.find((one) => one.name === name);
    const columns = selected.split(", ").map((one) => view?.columns.find((column) => column.name === one));
    lines.push(`  - name: ${model}`, `    description: ${scalar(view?.comment ?? "")}`, "    columns:");
    for (const column of columns) {
      if (column === undefined) throw new Error(`${model} selects what ${name} does not have.`);
      lines.push(`      - ${columnOf(column, [])}`);
    }
  }
  return `${lines.join("\n")}\n`;
}

/** What reads the views outside dbt, so that dbt shows what a change reaches. */
const EXPOSURES = [
  {
    name: "usage_etl_grafana",
    type: "dashboard",
    file: "deploy/monitoring/grafana/dashboards/usage.json",
    label: "The Grafana dashboard of usage-etl",
  },
  {
    name: "usage_etl_chargeback",
    type: "analysis",
    file: "examples/chargeback.sql",
    label: "Each owner's cost of a month",
  },
];

function dbtExposures(views: readonly View[]): string {
  const shown = new Set(views.filter((view) => !isMasked(view)).map((view) => view.name));
  const lines = ["# Made by `npm run schema` from the files of usage-etl.", "version: 2", "exposures:"];
  for (const { name, type, file, label } of EXPOSURES) {
    const text = readFileSync(new URL(`../../${file}`, MODELS), "utf8");
    const found = [...text.matchAll(/\b(reporting|reporting_detail)\.(\w+)/g)];
    const known = found.filter(([, , view = ""]) => shown.has(view));
    const read = new Set(known.map(([, schema = "", view]) => `source('${SOURCES[schema]}', '${view}')`));
    lines.push(
      `  - name: ${name}`,
      `    label: ${label}`,
      `    type: ${type}`,
      "    owner: { name: usage-etl }",
      `    description: docs/${file}`,
      `    depends_on: [${[...read]
        .sort()
        .map((one) => `"${one}"`)
        .join(", ")}]`,
    );
  }
  return `${lines.join("\n")}\n`;
}

/**
 * A dbt test that every key is unique; its rows are the keys that occur twice. dbt's own `unique` tests one column, but
 * these keys have several. Of large views it reads the newest time, since a key is made alike for all of it.
 */
function dbtKeyTest(views: readonly View[]): string {
  const selects = views
    .filter((view) => keyOf(view).length > 1 && !PROVED.includes(view.name))
    .sort((a, b) => Number(isMasked(a)) - Number(isMasked(b)))
    .map((view) => {
      const columns = keyOf(view).map((name) => (name === name.toLowerCase() ? name : `"${name}"`));
      const newest = newestOf(view);
      const [begin, end] = isMasked(view)
        ? ["{% if not var('usage_etl_masked', false) -%}\nUNION ALL\n", "\n{%- endif %}"]
        : ["UNION ALL\n", ""];
      const select = [
        `SELECT '${view.name}' AS view_name, count(*) AS rows_of_one_key`,
        `FROM {{ ${sourceOf(view)} }}`,
        ...(newest === undefined ? [] : [`WHERE ${newest}`]),
        `GROUP BY ${columns.join(", ")}`,
        "HAVING count(*) > 1",
      ].join("\n");
      return `${begin}${select}${end}\n`;
    });
  return `-- Made by \`npm run schema\` from the keys of the views.\n${selects.join("").replace("UNION ALL\n", "")}`;
}

function scalar(text: string): string {
  return JSON.stringify(text);
}

const ACCEPTED: Readonly<Record<string, readonly string[]>> = {
  "usage_coverage_daily.status": STATUSES,
  "usage_coverage_daily.group_by": GROUPINGS,
};

const NEWEST: Readonly<Record<string, string>> = {
  usage_date: "usage_date >= current_date - 45",
  x_UsageDate: '"x_UsageDate" >= current_date - 45',
  usage_hour: "usage_hour >= now() - interval '3 days'",
  period_start: "period_start >= now() - interval '3 days'",
};

function dbtTestsOf(view: View, { name }: ViewColumn): string[] {
  const newest = newestOf(view);
  const where = newest === undefined ? [] : [`config: { where: ${scalar(newest)} }`];
  const key = keyOf(view);
  const accepted = ACCEPTED[`${view.name}.${name}`];
  return [
    ...(key.length === 1 && key[0] === name ? ["not_null", "unique"] : []),
    ...(accepted === undefined
      ? []
      : [
          `{ accepted_values: { ${[`arguments: { values: [${accepted.join(", ")}] }`, ...where].join(", ")} } }`,
        ]),
  ];
}

function newestOf(view: View): string | undefined {
  const time = timeColumnOf(view)?.name ?? "";
  if (time === "period_start" && view.name !== "usage_record") return undefined;
  return keyOf(view).includes(time) ? NEWEST[time] : undefined;
}
