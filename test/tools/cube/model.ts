import { readdirSync, readFileSync } from "node:fs";
import { parse } from "yaml";
import { z } from "zod";

const FOLDER = new URL("../../../docs/cube/model/cubes/", import.meta.url);

const member = { name: z.string(), sql: z.string(), description: z.string().regex(/\.$/) };
const measure = z.strictObject({
  ...{ ...member, sql: member.sql.optional() },
  type: z.enum(["sum", "count", "count_distinct", "number", "boolean"]),
  filters: z.array(z.strictObject({ sql: z.string() })).optional(),
});
/** What the model uses of Cube's format. It has no joins. */
const cube = z.strictObject({
  name: z.string(),
  sql_table: z.string().regex(/^reporting(_detail)?\.\w+$/),
  description: z.string(),
  refresh_key: z.union([z.strictObject({ sql: z.string() }), z.strictObject({ every: z.string() })]),
  measures: z.array(measure),
  dimensions: z.array(z.strictObject({ ...member, type: z.enum(["string", "time", "boolean"]) })),
});
type Cube = z.infer<typeof cube>;

/** The files of the model, as Cube's compiler takes them. */
export const FILES = readdirSync(FOLDER).map((fileName) => ({
  fileName,
  content: readFileSync(new URL(fileName, FOLDER), "utf8"),
}));

export const CUBES: readonly Cube[] = FILES.flatMap(
  ({ content }) => z.strictObject({ cubes: z.array(cube) }).parse(parse(content)).cubes,
);

/** A query as Cube's API takes it, of members without their cube; filters are equalities. */
export interface Question {
  readonly cube: string;
  readonly measures: readonly string[];
  readonly dimensions?: readonly string[];
  readonly filters?: Readonly<Record<string, string>>;
  /** Days from and to, both included, and the dimension that they are of. */
  readonly range?: readonly [dimension: string, from: string, to: string];
}

/** The SQL that the members of a question mean, with a column for each under its own name. */
export function sqlOf({ cube: name, measures, dimensions = [], filters = {}, range }: Question): string {
  const { sql_table, ...one } = CUBES.find((found) => found.name === name) as Cube;
  const text = (sql: string) => sql.replaceAll("{CUBE}", "c");
  const dimension = (of: string) => text(one.dimensions.find((found) => found.name === of)?.sql as string);
  const selected = [
    ...dimensions.map((of) => `${dimension(of)} AS ${of}`),
    ...measures.map((of) => {
      const {
        type,
        sql = "*",
        filters: only,
      } = one.measures.find((found) => found.name === of) as z.infer<typeof measure>;
      const filter =
        only === undefined ? "" : ` FILTER (WHERE ${only.map((where) => text(where.sql)).join(" AND ")})`;
      const aggregate = { sum: `sum(${text(sql)})`, count: `count(${text(sql)})` }[type as string];
      const counted = type === "count_distinct" ? `count(DISTINCT ${text(sql)})` : text(sql);
      return `${aggregate ?? counted}${filter} AS ${of}`;
    }),
  ];
  const where = [
    ...Object.entries(filters).map(([of, value]) => `${dimension(of)} = '${value}'`),
    ...(range === undefined
      ? []
      : [`${dimension(range[0])} >= '${range[1]}' AND ${dimension(range[0])} < '${range[2]}'::date + 1`]),
  ];
  const grouped = dimensions.map((_, i) => i + 1).join(", ");
  return `SELECT ${selected.join(", ")} FROM ${sql_table} c WHERE ${[...where, "true"].join(" AND ")}
    ${grouped === "" ? "" : `GROUP BY ${grouped} ORDER BY ${grouped}`}`;
}
