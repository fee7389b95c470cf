import { z } from "zod";

/**
 * Facts of dbt's public JSON schemas (dbt-labs/dbt-jsonschema, latest_fusion, which dbt 1.12 checks by too), written down for
 * the objects that the package uses: which keys each may have, and of what type. Unknown keys are refused there and here.
 */

const name = z.string().regex(/^(?!.*__)[a-z][a-z0-9_]*[a-z0-9]$/);
const strings = z.union([z.string(), z.array(z.string())]);

const period = z.strictObject({ count: z.int(), period: z.enum(["minute", "hour", "day"]) });
const testConfig = z.strictObject({ where: z.string(), severity: z.enum(["warn", "error"]) }).partial();
const test = z.union([
  z.string(),
  z
    .record(
      z.string(),
      z
        .strictObject({ arguments: z.record(z.string(), z.unknown()), config: testConfig, name: z.string() })
        .partial(),
    )
    .refine((one) => Object.keys(one).length === 1),
]);

const granularity = z.enum(["hour", "day", "week", "month", "quarter", "year"]);
const column = z.strictObject({
  name: z.string(),
  description: z.string().optional(),
  data_type: z.string().optional(),
  quote: z.boolean().optional(),
  data_tests: z.array(test).optional(),
  granularity: granularity.optional(),
  dimension: z.strictObject({ type: z.enum(["categorical", "time"]) }).optional(),
  entity: z.strictObject({ type: z.enum(["foreign", "natural", "primary", "unique"]), name }).optional(),
});

/** Of all metric types only those that the package uses. */
const metric = z.strictObject({
  name,
  label: z.string().optional(),
  description: z.string().optional(),
  type: z.enum(["simple"]),
  agg: z.enum([
    "sum",
    "min",
    "max",
    "count_distinct",
    "sum_boolean",
    "average",
    "percentile",
    "median",
    "count",
  ]),
  expr: z.string(),
});

const model = z.strictObject({
  name: z.string(),
  description: z.string().optional(),
  columns: z.array(column).optional(),
  data_tests: z.array(test).optional(),
  semantic_model: z.strictObject({ enabled: z.boolean(), name }).optional(),
  primary_entity: name.optional(),
  agg_time_dimension: name.optional(),
  time_spine: z.strictObject({ standard_granularity_column: z.string() }).optional(),
  metrics: z.array(metric).optional(),
});

const source = z.strictObject({
  name: z.string(),
  database: z.string(),
  schema: z.string(),
  tables: z.array(
    z.strictObject({
      name: z.string(),
      description: z.string(),
      config: z
        .strictObject({
          freshness: z.strictObject({ warn_after: period, error_after: period }),
          // Not beside loaded_at_field.
          loaded_at_query: z.string(),
        })
        .optional(),
      columns: z.array(column),
    }),
  ),
});

export const propertiesFile = z.strictObject({
  version: z.literal(2),
  models: z.array(model).optional(),
  sources: z.array(source).optional(),
});
export type PropertiesFile = z.infer<typeof propertiesFile>;
export type DataTest = z.infer<typeof test>;

export const projectFile = z.strictObject({
  name: z.string().regex(/^[a-z_][a-z0-9_]*$/),
  version: z.string(),
  "config-version": z.literal(2),
  "require-dbt-version": strings,
  profile: z.string(),
  "model-paths": z.array(z.string()),
  "macro-paths": z.array(z.string()),
  "test-paths": z.array(z.string()),
  vars: z.record(z.string(), z.unknown()),
  models: z.record(
    z.string(),
    z.record(z.string(), z.strictObject({ "+materialized": z.enum(["view", "table"]) })),
  ),
});
