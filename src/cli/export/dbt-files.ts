import { keyOf, type View } from "../../store/export/views.ts";
import { dbtTestsOf, newestOf } from "./dbt-tests.ts";

/** By default a sync runs every 15 minutes. A day without one is an outage. */
const FRESHNESS = "{ warn_after: { count: 6, period: hour }, error_after: { count: 24, period: hour } }";

/**
 * The constraints of the tables prove the key of a stored record: each names its series and bucket once, and no two loaded
 * intervals of a scope overlap. Postgres needs minutes to see the same in millions of records.
 */
const PROVED = ["usage_record"];

/** Of a view that is there itself: it has the same rows. A masked reader has the twin alone. */
function isTwin({ name }: View, views: readonly View[]): boolean {
  return views.some((view) => name === `${view.name}_masked`);
}

function isProved({ name }: View): boolean {
  return PROVED.some((one) => name === one || name === `${one}_masked`);
}

/**
 * dbt compares one time of a table with the clock. The newest of all would hide a source, or a dimension, that stalls while others
 * go on: so it is the oldest of them. Days are asked for in every sync, other strides by some sources only.
 */
const OLDEST_FETCH = `select min(fetched_at) from {{ this }} where stride = 'day'
{%- if var('usage_etl_sources', []) | length > 0 %} and source_id in ('{{ var("usage_etl_sources") | join("', '") }}'){% endif %}`;

/** `sources.yml` for dbt 1.12 or later: the views with their comments, tests and freshness. */
export function dbtSources(views: readonly View[]): string {
  const lines = [
    "# Made by usage-etl dbt sources from the comments of the views.",
    "version: 2",
    "sources:",
    "  - name: usage",
    "    database: \"{{ var('usage_etl_database', target.database) }}\"",
    "    schema: \"{{ var('usage_etl_schema', 'reporting') }}\"",
    "    tables:",
  ];
  for (const view of views) {
    lines.push(`      - name: ${view.name}`, `        description: ${scalar(view.comment)}`);
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
      const tests = dbtTestsOf(view, column).map((line) => `              ${line}`);
      if (tests.length > 0) lines.push("            data_tests:", ...tests);
    }
  }
  return `${lines.join("\n")}\n`;
}

/**
 * A dbt test that every key is unique; its rows are the keys that occur twice. dbt's own `unique` tests one column, but
 * these keys have several. Of large views it reads the newest time, since a key is made alike for all of it.
 */
export function dbtKeyTest(views: readonly View[]): string {
  const selects = views
    .filter((view) => keyOf(view).length > 1 && !isTwin(view, views) && !isProved(view))
    .map((view) => {
      const columns = keyOf(view).map((name) => (name === name.toLowerCase() ? name : `"${name}"`));
      const newest = newestOf(view);
      return [
        `SELECT '${view.name}' AS view_name, count(*) AS rows_of_one_key`,
        `FROM {{ source('usage', '${view.name}') }}`,
        ...(newest === undefined ? [] : [`WHERE ${newest}`]),
        `GROUP BY ${columns.join(", ")}`,
        "HAVING count(*) > 1",
      ].join("\n");
    });
  return `-- Made by usage-etl dbt keys from the keys of the views.\n${selects.join("\nUNION ALL\n")}\n`;
}

/** YAML's double-quoted scalars are JSON strings. */
function scalar(text: string): string {
  return JSON.stringify(text);
}
