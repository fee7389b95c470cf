import { readdirSync, readFileSync } from "node:fs";
import nunjucks from "nunjucks";
import { parse } from "yaml";

const ROOT = new URL("../../../docs/dbt/", import.meta.url);
/** Where the test builds the models. */
export const TARGET = "analytics";

export function readPackage(path: string): string {
  return readFileSync(new URL(path, ROOT), "utf8");
}

/** Paths of the package's files with an ending. */
function packageFiles(ending: string): string[] {
  return readdirSync(ROOT, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(ending));
}

/** Models, by name. */
export const MODELS: ReadonlyMap<string, string> = new Map(
  packageFiles(".sql")
    .filter((path) => path.startsWith("models/"))
    .map((path) => [path.replace(/.*\/|\.sql$/g, ""), readPackage(path)]),
);

/** A test without parameters, or by its name with them. */
export type DataTest = string | Readonly<Record<string, object>>;

interface Column {
  readonly name: string;
  readonly quote?: boolean;
  readonly data_tests?: readonly DataTest[];
  readonly dimension?: { readonly type: string };
  readonly entity?: { readonly type: string; readonly name: string };
}

/** The parts of a properties file that the tests read. */
interface PropertiesFile {
  readonly models?: readonly {
    readonly name: string;
    readonly columns?: readonly Column[];
    readonly data_tests?: readonly DataTest[];
    readonly semantic_model?: { readonly enabled: boolean };
    readonly primary_entity?: string;
    readonly agg_time_dimension?: string;
    readonly metrics?: readonly { name: string; type: string; agg: string; expr: string }[];
  }[];
  readonly sources?: readonly {
    readonly tables: readonly {
      readonly name: string;
      readonly columns: readonly Column[];
      readonly config?: { freshness: { error_after: { count: number } }; loaded_at_query: string };
    }[];
  }[];
}

/** The properties files of the package, parsed. */
export const PROPERTIES: readonly PropertiesFile[] = packageFiles(".yml")
  .filter((path) => path.startsWith("models/"))
  .map((path) => parse(readPackage(path)));

interface Rendering {
  readonly this?: string;
  readonly isIncremental?: boolean;
  readonly vars?: Readonly<Record<string, unknown>>;
}
export interface Rendered {
  readonly sql: string;
  readonly config: Readonly<Record<string, unknown>>;
}

/** What dbt makes of a model, a test or a query of the package: `ref`, `source`, `var` and the like are functions here. */
export function render(
  text: string,
  { this: relation, isIncremental = false, vars = {} }: Rendering = {},
): Rendered {
  const config: Record<string, unknown> = {};
  const env = new nunjucks.Environment(
    { getSource: (name: string) => ({ src: readPackage(`macros/${name}.sql`), path: name, noCache: true }) },
    { autoescape: false, throwOnUndefined: true },
  );
  const globals = {
    this: relation,
    is_incremental: () => isIncremental,
    ref: (name: string) => {
      if (!MODELS.has(name)) throw new Error(`There is no model ${name}`);
      return `${TARGET}.${name}`;
    },
    source: (name: string, table: string) => {
      const schema = { usage: "reporting", usage_detail: "reporting_detail" }[name];
      if (schema === undefined) throw new Error(`There is no source ${name}`);
      return `${schema}.${table}`;
    },
    var: (name: string, otherwise: unknown) => vars[name] ?? otherwise,
    config: (given: Record<string, unknown>) => {
      Object.assign(config, given);
      return "";
    },
    // A macro of the package, as others call it.
    usage_etl: Object.fromEntries(
      packageFiles(".sql")
        .filter((path) => path.startsWith("macros/"))
        .map((path) => path.replace(/.*\/|\.sql$/g, ""))
        .map((name) => [
          name,
          (...given: string[]) =>
            env.renderString(
              `{% from "${name}" import ${name} %}{{ ${name}(${given.map((one) => JSON.stringify(one)).join(", ")}) }}`,
              {},
            ),
        ]),
    ),
  };
  for (const [name, value] of Object.entries(globals)) env.addGlobal(name, value);
  return { sql: env.renderString(text, {}), config };
}
