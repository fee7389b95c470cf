import { createRequire } from "node:module";
import { FILES, type Question } from "./model.ts";

/** A folder with Cube's own packages, for a run through them: docs/cube/README.md. */
export const CUBE_MODULES = process.env.CUBE_MODULES;

interface Cube {
  readonly ask: (question: Question) => Promise<Record<string, unknown>[]>;
  /** Of members with their cube. */
  readonly sqlOf: (query: object) => [sql: string, parameters: unknown[]];
  readonly close: () => Promise<void>;
}

/** Cube's compiler over the model of docs/cube, and its Postgres driver. */
export async function openCube(connectionString: string): Promise<Cube> {
  const load = createRequire(`${CUBE_MODULES}/package.json`);
  process.env.CUBEJS_TELEMETRY = "false";
  // Its newer planner is a binary that npm does not bring. The model has no templates, which need the binary too.
  process.env.CUBEJS_TESSERACT_SQL_PLANNER = "false";
  const native = load("@cubejs-backend/native");
  native.NativeInstance.prototype.newJinjaEngine = () => ({ loadTemplate: () => undefined });
  const { prepareCompiler, PostgresQuery } = load("@cubejs-backend/schema-compiler");
  const { PostgresDriver } = load("@cubejs-backend/postgres-driver");
  const compilers = prepareCompiler({ localPath: () => "model", dataSchemaFiles: async () => FILES }, {});
  await compilers.compiler.compile();
  const driver = new PostgresDriver({ connectionString, max: 1 });
  const sqlOf = (query: object) =>
    new PostgresQuery(compilers, { timezone: "UTC", ...query }).buildSqlAndParams();
  return {
    sqlOf,
    ask: async ({ cube, measures, dimensions = [], filters = {}, range }) => {
      const of = (name: string) => `${cube}.${name}`;
      const [sql, parameters] = sqlOf({
        measures: measures.map(of),
        dimensions: dimensions.map(of),
        filters: Object.entries(filters).map(([name, value]) => ({
          member: of(name),
          operator: "equals",
          values: [value],
        })),
        timeDimensions:
          range === undefined ? [] : [{ dimension: of(range[0]), dateRange: [range[1], range[2]] }],
        order: dimensions.map((name) => ({ id: of(name), desc: false })),
      });
      const rows = (await driver.query(sql, parameters)) as Record<string, unknown>[];
      return rows.map((row) =>
        Object.fromEntries(
          Object.entries(row).map(([name, value]) => [name.replace(`${cube}__`, ""), value]),
        ),
      );
    },
    close: () => driver.release(),
  };
}
