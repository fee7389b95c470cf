import { stringify } from "yaml";
import { GROUPINGS, type GroupBy } from "../../src/domain/usage/record.ts";
import { DIMENSIONS } from "../../src/store/db/dimensions.ts";
import { keyOf, type View } from "../../src/store/export/views.ts";

/**
 * The marts of docs/dbt as dbt is told of them, from the views: `npm run schema` writes it. What a column means is its comment in the
 * database, but for the few that only the marts have, or that mean less there.
 */

interface Column {
  readonly name: string;
  readonly description?: string;
  readonly granularity?: "day";
  readonly dimension?: { readonly type: "categorical" | "time" };
  readonly entity?: { readonly type: "foreign" | "primary"; readonly name: string };
  readonly data_tests?: readonly unknown[];
}

const HEAD = `# Made by \`npm run schema\` from the views. One semantic model a table. Metrics of two tables are other views of the same traces: no
# metric adds two of them, and no two of these tables have an entity in common that MetricFlow could join them by.
`;

export function dbtMarts(views: readonly View[]): string {
  const model = (
    given: { name: string; of: string; isFinal?: boolean; columns: readonly Column[] } & Record<
      string,
      unknown
    >,
  ) => {
    const { name, of, isFinal = false, columns, ...rest } = given;
    const view = views.find((one) => one.name === of);
    if (view === undefined) throw new Error(`no view ${of}`);
    const described = columns.map(({ name: column, ...roles }) => {
      const comment = view.columns.find((one) => one.name === column)?.comment;
      const { description = comment } = roles;
      if (description === undefined) throw new Error(`${of} has no column ${column}`);
      return { name: column, ...roles, description };
    });
    const description = isFinal ? `${view.comment} Only final days.` : view.comment;
    return { name: `usage_etl__${name}`, description, ...rest, columns: described };
  };
  const keyed = (of: string, nullable?: string) => {
    const view = views.find((one) => one.name === of);
    const key = view === undefined ? [] : keyOf(view);
    const parts = key.map((column) => (column === nullable ? `coalesce(${column}, '')` : column));
    return {
      key: key.join(", "),
      test: { unique: { arguments: { column_name: `concat_ws('/', ${parts.join(", ")})` } } },
    };
  };
  const dimension = (by: GroupBy) => {
    const { id, name, title } = DIMENSIONS[by];
    return model({
      name: by,
      of: `dim_${by}`,
      description: `Grain: ${title} (key: ${by}_key). With its current name; names are not unique.`,
      semantic_model: { enabled: true, name: `usage_${by}s` },
      columns: [
        {
          name: `${by}_key`,
          description: `source_id and ${id}.`,
          entity: { type: "primary", name: `usage_${by}` },
          data_tests: ["not_null", "unique"],
        },
        { name: id, dimension: { type: "categorical" } },
        ...(name === undefined ? [] : [{ name, dimension: { type: "categorical" as const } }]),
      ],
    });
  };
  const usage = (by: GroupBy) => {
    const { id, title } = DIMENSIONS[by];
    const of = `fct_usage_${by}_daily`;
    const isWhole = by === "workspace";
    const { key, test } = keyed(of, isWhole ? undefined : id);
    const never = "Never add them to those of another dimension: each is another view of the same traces.";
    const grain = `Grain: final UTC day x workspace${isWhole ? "" : ` x ${title}`} (key: ${key}).`;
    const empty = isWhole ? "" : ` A final day without usage is one row with null ${id} and 0 traces.`;
    const own: readonly Column[] = [
      {
        name: id,
        description: `The platform's id of the ${title}; (none) where the platform gave none, null on a final day without usage.`,
      },
      keyColumn(by, true),
    ];
    return model({
      name: `${by}_daily`,
      of,
      description: `${grain} Only final days; a later restatement replaces its day.${empty} Traces add up over all of these.${isWhole ? "" : ` ${never}`}`,
      ...fact(`usage_by_${by}`, `usage_${by}_day`),
      data_tests: [test],
      columns: [
        { name: "source_id", dimension: { type: "categorical" }, data_tests: ["not_null"] },
        DAY,
        { name: "workspace_id", data_tests: ["not_null"] },
        keyColumn("workspace", true),
        ...(isWhole ? [] : own),
        { name: "traces", description: "Final number of traces.", data_tests: ["not_null"] },
        {
          name: "restatements",
          description: "How often a count of the day was changed after it was final.",
        },
        { name: "restated_at", description: "When that was done last; null: never." },
        { name: "day_state", description: "Tells the next run whether anything happened to the day." },
      ],
      metrics: isWhole
        ? [
            metric("usage_traces", "Traces", "traces", {
              about:
                "All traces, from the counts by workspace: the figure to use wherever no other dimension is asked for. Final days only.",
            }),
          ]
        : [
            metric(`usage_${by}_traces`, `Traces by ${title}`, "traces", {
              about: `Traces from the counts by ${title}. Never add it to the traces of another dimension. Final days only.`,
            }),
            metric(
              `usage_active_${by}s`,
              `Active ${title}s`,
              `case when ${id} <> '(none)' and traces > 0 then ${by}_key end`,
              {
                agg: "count_distinct",
                about: `Each ${title} with traces. Counted anew for each period: days do not add up to months.`,
              },
            ),
          ],
    });
  };
  const [unattributed, cost] = ["usage_unattributed_daily", "fct_cost_workspace_daily"];
  const models = [
    ...GROUPINGS.map(dimension),
    model({
      name: "time_spine",
      of: "dim_date",
      time_spine: { standard_granularity_column: "usage_date" },
      description: "Grain: UTC day (key: usage_date). The time spine of the semantic layer.",
      columns: [{ name: "usage_date", granularity: "day", data_tests: ["not_null", "unique"] }],
    }),
    ...GROUPINGS.map(usage),
    model({
      name: "unattributed_daily",
      of: unattributed,
      isFinal: true,
      ...fact("usage_unattributed", "usage_unattributed_day"),
      data_tests: [keyed(unattributed).test],
      columns: [
        DAY,
        keyColumn("workspace"),
        {
          name: "group_by",
          data_tests: [{ accepted_values: { arguments: { values: ["project", "user", "api_key"] } } }],
        },
        ...["workspace_traces", "attributed_traces", "unattributed_traces"].map((name) => ({
          name,
          data_tests: ["not_null"],
        })),
      ],
      // No semantic dimension: each metric is of one of them.
      metrics: GROUPINGS.filter((by) => by !== "workspace").map((by) =>
        metric(
          `usage_unattributed_${by}_traces`,
          `Traces without ${by === "api_key" ? "an" : "a"} ${DIMENSIONS[by].title}`,
          `case when group_by = '${by}' then unattributed_traces end`,
          { about: "Final traces of the workspace that the dimension does not attribute." },
        ),
      ),
    }),
    model({
      name: "cost_daily",
      of: cost,
      ...fact("usage_cost", "usage_cost_day"),
      data_tests: [keyed(cost).test],
      columns: [
        DAY,
        keyColumn("workspace"),
        { name: "sku", dimension: { type: "categorical" }, data_tests: ["not_null"] },
        ...["currency", "estimated_cost", "is_final"].map((name) => ({ name, data_tests: ["not_null"] })),
      ],
      // No semantic dimension either.
      metrics: ["USD", "EUR"].map((currency) =>
        metric(
          `usage_estimated_cost_${currency.toLowerCase()}`,
          `Estimated cost (${currency})`,
          `case when currency = '${currency}' and is_final then estimated_cost end`,
          {
            about: `Imported prices times what was used on final days, in ${currency}. An estimate, not an invoice.`,
          },
        ),
      ),
    }),
    model({
      name: "month_close",
      of: "fct_month_close_by_dimension",
      columns: ["month_start", "closed_traces", "adjustment_traces", "current_traces"].map((name) => ({
        name,
        data_tests: ["not_null"],
      })),
    }),
  ];
  return `${HEAD}${stringify({ version: 2, models }, { lineWidth: 0, aliasDuplicateObjects: false })}`;
}

const DAY: Column = {
  name: "usage_date",
  granularity: "day",
  dimension: { type: "time" },
  data_tests: ["not_null"],
};

function keyColumn(by: GroupBy, tested = false): Column {
  const to = { to: `ref('usage_etl__${by}')`, field: `${by}_key` };
  return {
    name: `${by}_key`,
    description: `source_id and ${DIMENSIONS[by].id}, for tools that join by one column.`,
    entity: { type: "foreign", name: `usage_${by}` },
    ...(tested && { data_tests: [{ relationships: { arguments: to } }] }),
  };
}

const fact = (name: string, primary_entity: string) => ({
  semantic_model: { enabled: true, name },
  primary_entity,
  agg_time_dimension: "usage_date",
});

function metric(
  name: string,
  label: string,
  expr: string,
  { about, agg = "sum" }: { about: string; agg?: string },
) {
  return { name, label, description: about, type: "simple", agg, expr };
}
