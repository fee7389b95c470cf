import { type DataTest, render } from "./package.ts";

interface Tested {
  readonly relation: string;
  readonly column?: string;
  /** Without the test's own condition. */
  readonly everything?: boolean;
}

interface Given {
  readonly arguments?: { column_name?: string; values?: string[]; to?: string; field?: string };
  readonly config?: { where?: string };
}

function parts(test: DataTest): [name: string, given: Given] {
  return typeof test === "string" ? [test, {}] : (Object.entries(test)[0] as [string, Given]);
}

export function whereOf(test: DataTest): string | undefined {
  return parts(test)[1].config?.where;
}

/** One of dbt's generic tests as it compiles it: the rows it returns are failures. */
export function compileTest(test: DataTest, { relation, column, everything = false }: Tested): string {
  const [name, { arguments: args = {} }] = parts(test);
  const where = everything ? undefined : whereOf(test);
  const of = where === undefined ? relation : `(SELECT * FROM ${relation} WHERE ${where})`;
  const tested = column ?? args.column_name;
  if (tested === undefined) throw new Error(`${name} of ${relation} names no column`);
  if (name === "not_null") return `SELECT ${tested} FROM ${of} child WHERE ${tested} IS NULL`;
  if (name === "unique")
    return `SELECT ${tested} FROM ${of} child WHERE ${tested} IS NOT NULL GROUP BY ${tested} HAVING count(*) > 1`;
  if (name === "accepted_values")
    return `SELECT ${tested} FROM ${of} child WHERE ${tested} NOT IN (${args.values?.map((one) => `'${one}'`).join(", ")})`;
  if (name === "relationships")
    return `SELECT child.${tested} FROM ${of} child
      LEFT JOIN ${render(`{{ ${args.to} }}`).sql} parent ON child.${tested} = parent.${args.field}
      WHERE child.${tested} IS NOT NULL AND parent.${args.field} IS NULL`;
  throw new Error(`Unknown test ${name}`);
}
