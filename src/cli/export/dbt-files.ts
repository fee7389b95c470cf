import { DIMENSIONS } from "../../store/db/dimensions.ts";
import { keyOf, type View } from "../../store/report/views.ts";

/** These ids are null if a day or hour of the workspace is not loaded. */
const NULL_WHERE_MISSING = Object.values(DIMENSIONS)
  .map(({ id }) => id)
  .filter((id) => id !== DIMENSIONS.workspace.id);
/** By default a sync runs every 15 minutes. A day without one is an outage. */
const FRESHNESS = "{ warn_after: { count: 6, period: hour }, error_after: { count: 24, period: hour } }";

/** Key columns that are never null. */
function notNullOf(view: View): readonly string[] {
  const isFact = view.name.startsWith("fct_");
  return keyOf(view).filter((name) => !(isFact && NULL_WHERE_MISSING.includes(name)));
}

/**
 * `sources.yml` for dbt 1.10 or later: the views with their comments, not-null tests of keys, and freshness. The masked
 * views hold the same rows as their originals and are not tested again.
 */
export function dbtSources(views: readonly View[]): string {
  const lines = [
    "# Made by usage-etl dbt sources from the comments of the views.",
    "version: 2",
    "sources:",
    "  - name: usage",
    "    schema: reporting",
    "    tables:",
  ];
  for (const view of views) {
    const notNull = view.name.endsWith("_masked") ? [] : notNullOf(view);
    const isUnique = notNull.length === 1 && keyOf(view).length === 1;
    lines.push(`      - name: ${view.name}`, `        description: ${scalar(view.comment)}`);
    if (view.name === "data_freshness") {
      lines.push(
        "        config:",
        "          loaded_at_field: fetched_at",
        `          freshness: ${FRESHNESS}`,
      );
    }
    lines.push("        columns:");
    for (const { name, type, comment } of view.columns) {
      lines.push(`          - name: ${name}`);
      // Postgres folds unquoted names to lower case.
      if (name !== name.toLowerCase()) lines.push("            quote: true");
      lines.push(`            description: ${scalar(comment)}`, `            data_type: ${type}`);
      if (notNull.includes(name))
        lines.push(`            data_tests: [not_null${isUnique ? ", unique" : ""}]`);
    }
  }
  return `${lines.join("\n")}\n`;
}

/**
 * A dbt test that every key is unique; its rows are the keys that occur twice. dbt's own `unique` tests one column, but
 * these keys have several.
 */
export function dbtKeyTest(views: readonly View[]): string {
  const selects = views
    .filter((view) => keyOf(view).length > 1 && !view.name.endsWith("_masked"))
    .map((view) => {
      const columns = keyOf(view).map((name) => (name === name.toLowerCase() ? name : `"${name}"`));
      return `SELECT '${view.name}' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage', '${view.name}') }}
GROUP BY ${columns.join(", ")}
HAVING count(*) > 1`;
    });
  return `-- Made by usage-etl dbt keys from the keys of the views.\n${selects.join("\nUNION ALL\n")}\n`;
}

/** YAML's double-quoted scalars are JSON strings. */
function scalar(text: string): string {
  return JSON.stringify(text);
}
