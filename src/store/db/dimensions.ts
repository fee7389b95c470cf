import {
  MEASURE_DIGITS,
  MEASURES,
  METER,
  METERS,
  type Meter,
  meterOfMeasure,
} from "../../domain/usage/meter.ts";
import { type Dimension, dimensionOf, GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";

interface DimensionColumns {
  readonly id: string;
  /** Column of the current name; API keys, sandboxes and users have none. Addresses of users are in `dim_user` alone. */
  readonly name?: string;
  readonly title: string;
}

export const DIMENSIONS: Readonly<Record<Dimension, DimensionColumns>> = {
  workspace: { id: "workspace_id", name: "workspace_name", title: "workspace" },
  project: { id: "project_id", name: "project_name", title: "project" },
  user: { id: "user_id", title: "user" },
  api_key: { id: "api_key_short_key", title: "API key" },
  deployment: { id: "deployment_id", name: "deployment_name", title: "deployment" },
  sandbox: { id: "sandbox_id", title: "sandbox" },
  run_rule: { id: "run_rule_id", name: "run_rule_name", title: "run rule" },
};

type Placeholders = Readonly<Record<string, string>>;

const EACH: Readonly<Record<string, () => readonly Placeholders[]>> = {
  dimension: () => GROUPINGS.map(placeholdersOf),
  "dimension but workspace": () => GROUPINGS.filter((one) => one !== "workspace").map(placeholdersOf),
  "meter and dimension": () => METERS.flatMap(placeholdersOfMeter),
  "other meter": () => OTHERS.map((meter) => ({ meter })),
  "other meter and dimension": () =>
    OTHERS.flatMap(placeholdersOfMeter).filter(({ group_by }) => group_by !== "workspace"),
  measure: () =>
    MEASURES.filter((one) => one !== "traces").map((measure) => ({
      measure,
      meter: meterOfMeasure(measure),
    })),
  "measure with digits": () =>
    MEASURES.filter((one) => MEASURE_DIGITS[one] > 0).map((measure) => ({
      measure,
      unit: `0.${"1".padStart(MEASURE_DIGITS[measure], "0")}`,
    })),
  "list of charges": () => [
    { view: "focus_1_4_cost_and_usage", charges: "usage.billed_charge" },
    { view: "focus_1_4_cost_and_usage_by_resource", charges: "usage.divided_charge" },
  ],
};

/** Meters that count no traces. */
const OTHERS = METERS.filter((meter) => METER[meter].kind !== "traces");

function placeholdersOfMeter(meter: Meter) {
  const { kind, tier, groupings } = METER[meter];
  return groupings.map((group_by) => ({
    meter,
    kind,
    tier,
    group_by,
    dimension: dimensionOf(meter, group_by),
  }));
}

const BLOCK = /^ *-- each ([a-z ]+)\n(.*?)^ *-- end\n/gms;

/**
 * Repeats the text between `-- each dimension`, or another key of `EACH`, and `-- end` once for each, and fills in its
 * placeholders. Throws on an unknown key or placeholder.
 */
export function expandDimensions(sql: string): string {
  return sql.replace(BLOCK, (_, each: string, body: string) => {
    const all = EACH[each];
    if (all === undefined) throw new Error(`sql/reporting: unknown block "each ${each}"`);
    return all()
      .map((placeholders) => fill(body, placeholders))
      .join("");
  });
}

function placeholdersOf(groupBy: GroupBy): Placeholders {
  const { id, name, title } = DIMENSIONS[groupBy];
  return {
    dimension: groupBy,
    position: String(GROUPINGS.indexOf(groupBy) + 1),
    title,
    /** A newcomer needs only projects. */
    schema_of_project: groupBy === "project" ? "reporting" : "reporting_detail",
    id_column: id,
    columns: columnsOf(DIMENSIONS[groupBy]),
    dim_columns:
      groupBy === "user"
        ? "d.dimension_id AS user_id, d.dimension_name AS user_email"
        : columnsOf(DIMENSIONS[groupBy]),
    name_of_part: name === undefined ? "NULL::text" : "dimension_name",
    column_types: [id, ...(name === undefined ? [] : [name])].map((one) => `${one} text`).join(", "),
  };
}

function columnsOf({ id, name }: DimensionColumns): string {
  return `d.dimension_id AS ${id}${name === undefined ? "" : `, d.dimension_name AS ${name}`}`;
}

function fill(body: string, placeholders: Placeholders): string {
  return body.replace(/\{(\w+)\}/g, (found, name: string) => {
    const value = placeholders[name];
    if (value === undefined) throw new Error(`sql/reporting: unknown placeholder ${found}`);
    return value;
  });
}
