import { GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";

interface DimensionColumns {
  /** Column of the reporting views that holds the id. */
  readonly id: string;
  /** Column that holds the current name; API keys have none. */
  readonly name?: string;
  /** As the comments of the views say it. */
  readonly title: string;
}

/** What the reporting views call each dimension. With `GROUPINGS` it is all that sql/reporting knows of dimensions. */
export const DIMENSIONS: Readonly<Record<GroupBy, DimensionColumns>> = {
  workspace: { id: "workspace_id", name: "workspace_name", title: "workspace" },
  project: { id: "project_id", name: "project_name", title: "project" },
  user: { id: "user_id", name: "user_email", title: "user" },
  api_key: { id: "api_key_short_key", title: "API key" },
};

const BLOCK = /^ *-- each dimension( but workspace)?\n(.*?)^ *-- end\n/gms;

/**
 * Expands SQL of sql/reporting: repeats what stands between `-- each dimension [but workspace]` and `-- end` once for each
 * dimension, and fills in its placeholders. Throws on a placeholder that it does not know.
 */
export function expandDimensions(sql: string): string {
  return sql.replace(BLOCK, (_, butWorkspace: string | undefined, body: string) =>
    GROUPINGS.filter((groupBy) => butWorkspace === undefined || groupBy !== "workspace")
      .map((groupBy) => fill(body, placeholdersOf(groupBy)))
      .join(""),
  );
}

function placeholdersOf(groupBy: GroupBy): Readonly<Record<string, string>> {
  const { id, name, title } = DIMENSIONS[groupBy];
  const names = name === undefined ? [] : [name];
  return {
    dimension: groupBy,
    position: String(GROUPINGS.indexOf(groupBy) + 1),
    title,
    id_column: id,
    /** Of a view or row `d` with the columns dimension_id and dimension_name. */
    columns: [`d.dimension_id AS ${id}`, ...names.map((one) => `d.dimension_name AS ${one}`)].join(", "),
    column_types: [id, ...names].map((one) => `${one} text`).join(", "),
  };
}

function fill(body: string, placeholders: Readonly<Record<string, string>>): string {
  return body.replace(/\{(\w+)\}/g, (found, name: string) => {
    const value = placeholders[name];
    if (value === undefined) throw new Error(`sql/reporting: unknown placeholder ${found}`);
    return value;
  });
}
