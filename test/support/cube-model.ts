import { stringify } from "yaml";
import { GROUPINGS, type GroupBy } from "../../src/domain/usage/record.ts";
import { DIMENSIONS } from "../../src/store/db/dimensions.ts";
import type { View } from "../../src/store/export/views.ts";

/**
 * The data model of docs/cube, from the views: `npm run schema` writes it. Dimensions are the columns of a view that are no numbers,
 * and the descriptions are the comments in the database.
 */

interface Measure {
  readonly name: string;
  readonly sql?: string;
  readonly type: "sum" | "count" | "count_distinct" | "number" | "boolean";
  readonly filters?: readonly { readonly sql: string }[];
  readonly description: string;
}

interface Fact {
  readonly name: string;
  readonly view: string;
  readonly measures: readonly Measure[];
  /** Importing prices and applying an owner file change any day. */
  readonly hasCosts?: boolean;
}

const FACTS: readonly Fact[] = [
  ...GROUPINGS.map((by) => usage(by, "daily")),
  usage("workspace", "hourly"),
  {
    name: "usage_unattributed_daily",
    view: "usage_unattributed_daily",
    measures: [
      within("group_by", "unattributed_traces", "Final traces without an id in the dimension."),
      within("group_by", "workspace_traces", "Final traces of the same days by workspace.", "is_final"),
    ],
  },
  ...(["workspace", "owner"] as const).map((by) => ({
    name: by === "workspace" ? "usage_cost_daily" : `usage_cost_${by}_daily`,
    view: `fct_cost_${by}_daily`,
    measures: [
      within("currency", "estimated_cost", "Estimated cost."),
      {
        ...within("currency", "estimated_cost", "Estimated cost of final days.", "is_final"),
        name: "estimated_cost_final",
      },
    ],
    hasCosts: true,
  })),
  {
    name: "usage_month_close",
    view: "fct_month_close_by_dimension",
    measures: [
      within("group_by", "closed_traces", "Traces when the month was closed."),
      within("group_by", "adjustment_traces", "Traces added or removed since."),
      within("group_by", "current_traces", "Traces as stored today."),
    ],
  },
];

function usage(by: GroupBy, size: "daily" | "hourly"): Fact {
  const buckets = size === "daily" ? "days" : "hours";
  const { id, title } = DIMENSIONS[by];
  const never = by === "workspace" ? "" : " Never add it to that of another cube.";
  const active: Measure = {
    name: `active_${by}s`,
    sql: `CASE WHEN {CUBE}.${id} <> '(none)' AND {CUBE}.traces > 0 THEN {CUBE}.source_id || ':' || {CUBE}.${id} END`,
    type: "count_distinct",
    description: `Each ${title} with traces. Counted anew for each period.`,
  };
  return {
    name: `usage_${by}_${size}`,
    view: `fct_usage_${by}_${size}`,
    measures: [
      {
        ...{ name: "traces", sql: "{CUBE}.traces", type: "sum" },
        description: `All traces that are loaded, final or not.${never}`,
      },
      {
        ...{ name: "final_traces", sql: "{CUBE}.traces", type: "sum", filters: [{ sql: "{CUBE}.is_final" }] },
        description: `Traces of final ${buckets}.${never}`,
      },
      {
        ...{ name: `${buckets}_missing`, type: "count", filters: [{ sql: "{CUBE}.traces IS NULL" }] },
        description: `Workspace ${buckets} that are not loaded. Where it is over 0, traces lack them.`,
      },
      {
        ...{ name: "all_final", sql: "bool_and({CUBE}.is_final)", type: "boolean" },
        description: "Whether every figure of the group is final.",
      },
      ...(by === "workspace" ? [] : [active]),
    ],
  };
}

/** A sum that is null over two values of a column, such as of two currencies, which do not add up. */
function within(column: string, name: string, about: string, only?: string): Measure {
  const filter = only === undefined ? "" : ` FILTER (WHERE {CUBE}.${only})`;
  return {
    name,
    sql: `CASE WHEN count(DISTINCT {CUBE}.${column}) = 1 THEN sum({CUBE}.${name})${filter} END`,
    type: "number",
    description: `${about} Null unless the query takes one ${column}.`,
  };
}

/** Cube's types of the columns that are dimensions. */
const TYPES: Readonly<Record<string, string>> = {
  text: "string",
  boolean: "boolean",
  date: "time",
  "timestamp with time zone": "time",
};

const HEAD = `# Made by \`npm run schema\` from the views. One cube a fact, and no joins: workspace, project, user and key are views of the
# same traces. A query of two facts would count everything twice, so Cube has no path between them.
`;

export function cubeModel(views: readonly View[]): string {
  const cubes = FACTS.map(({ name, view: of, measures, hasCosts = false }) => {
    const view = views.find((one) => one.name === of);
    if (view === undefined) throw new Error(`no view ${of}`);
    return {
      name,
      sql_table: `${view.schema}.${view.name}`,
      description: view.comment,
      refresh_key: hasCosts
        ? { every: "10 minute" }
        : { sql: "SELECT max(fetched_at) FROM reporting.data_freshness" },
      measures,
      dimensions: view.columns.flatMap(({ name: column, type, comment: description }) => {
        const as = TYPES[type];
        return as === undefined ? [] : [{ name: column, sql: `{CUBE}.${column}`, type: as, description }];
      }),
    };
  });
  return `${HEAD}${stringify({ cubes }, { lineWidth: 0 })}`;
}
