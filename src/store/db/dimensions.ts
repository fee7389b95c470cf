import { METER, METERS } from "../../domain/usage/meter.ts";
import { dimensionOf, GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";

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

/** What a "project" of sandbox usage is: a sandbox or snapshot. */
export const SANDBOX: DimensionColumns = { id: "sandbox_id", title: "sandbox" };

/** What a "project" of deployment usage is: not one of the projects that traces belong to. */
export const DEPLOYMENT: DimensionColumns = {
  id: "deployment_id",
  name: "deployment_name",
  title: "deployment",
};

const BLOCK = /^ *-- each (dimension|dimension but workspace|meter and dimension)\n(.*?)^ *-- end\n/gms;

/**
 * Expands SQL of sql/reporting: repeats what stands between `-- each dimension [but workspace]` or `-- each meter and dimension` and
 * `-- end` once for each, and fills in its placeholders. Throws on a placeholder that it does not know.
 */
export function expandDimensions(sql: string): string {
  return sql.replace(BLOCK, (_, each: string, body: string) => {
    const filled =
      each === "meter and dimension"
        ? METERS.flatMap((meter) =>
            METER[meter].groupings.map((dimension) => ({ ...METER[meter], meter, dimension })),
          )
        : GROUPINGS.filter((one) => each === "dimension" || one !== "workspace").map(placeholdersOf);
    return filled.map((placeholders) => fill(body, placeholders)).join("");
  });
}

function placeholdersOf(groupBy: GroupBy): Readonly<Record<string, string>> {
  const { id, name, title } = DIMENSIONS[groupBy];
  const ofDeployments = groupBy === "project" ? DEPLOYMENT : DIMENSIONS[groupBy];
  return {
    dimension: groupBy,
    position: String(GROUPINGS.indexOf(groupBy) + 1),
    title,
    /** Where views are of which a newcomer needs the one by project (or deployment) alone. */
    schema_of_project: groupBy === "project" ? "reporting" : "reporting_detail",
    id_column: id,
    name_column: name ?? "NULL::text",
    columns: columnsOf(DIMENSIONS[groupBy]),
    column_types: [id, ...(name === undefined ? [] : [name])].map((one) => `${one} text`).join(", "),
    /** The same in deployment usage. */
    deployment_dimension: dimensionOf("deployments", groupBy),
    deployment_title: ofDeployments.title,
    deployment_id_column: ofDeployments.id,
    deployment_name_column: ofDeployments.name === undefined ? "NULL::text" : `d.${ofDeployments.name}`,
    deployment_columns: columnsOf(ofDeployments),
  };
}

/** Of a view or row `d` with the columns dimension_id and dimension_name. */
function columnsOf({ id, name }: DimensionColumns): string {
  return `d.dimension_id AS ${id}${name === undefined ? "" : `, d.dimension_name AS ${name}`}`;
}

function fill(body: string, placeholders: Readonly<Record<string, unknown>>): string {
  return body.replace(/\{(\w+)\}/g, (found, name: string) => {
    const value = placeholders[name];
    if (typeof value !== "string") throw new Error(`sql/reporting: unknown placeholder ${found}`);
    return value;
  });
}
