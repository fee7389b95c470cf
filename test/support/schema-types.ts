import { globSync, readFileSync } from "node:fs";
import type pg from "pg";
import { STRIDES } from "../../src/core/domain/time/stride.ts";
import { MEASURES, METERS } from "../../src/core/domain/usage/meter.ts";
import { ROOT } from "./schema-dump.ts";

const FILE = "src/core/store/db/schema.ts";
export const SCHEMA_TYPES = `${ROOT}${FILE}`;

interface Column {
  readonly relation: string;
  readonly name: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly isDefault: boolean;
  readonly isAlways: boolean;
  readonly allowed: string | null;
}

const TYPES: Readonly<Record<string, string>> = {
  bigint: "number",
  boolean: "boolean",
  bytea: "Buffer",
  "date[]": "Date",
  "double precision": "number",
  integer: "number",
  smallint: "number",
  "timestamp with time zone": "Date",
};
const NAMED = new Map([
  [unionOf(METERS), "Meter"],
  [unionOf(MEASURES), "Measure"],
  [unionOf(STRIDES), "Stride"],
]);
const BY_NAME: Readonly<Record<string, string>> = {
  dimension: "Dimension",
  group_by: "GroupBy",
  groupings: "GroupBy",
  meter: "Meter",
  meters: "Meter",
  stride: "Stride",
  wanted_meters: "Meter",
};

const NAMED_RELATION = /(?:Row<|From\(|[jJ]oin\()"(\w+\.\w+)/g;

function unionOf(values: readonly string[]): string {
  return values
    .map((value) => `"${value}"`)
    .toSorted()
    .join(" | ");
}

function typeOf({ name, type, allowed, ...column }: Column): string {
  const scalar = type.replace(/\[\]$/, "");
  const union = unionOf((allowed?.match(/'[^']*'/g) ?? []).map((quoted) => quoted.slice(1, -1)));
  const one =
    union === "" ? (BY_NAME[name] ?? TYPES[type] ?? TYPES[scalar] ?? "string") : (NAMED.get(union) ?? union);
  const value = `${scalar === type ? one : `readonly ${one}[]`}${column.isRequired ? "" : " | null"}`;
  if (column.isAlways) return `GeneratedAlways<${value}>`;
  return column.isDefault ? `Generated<${value}>` : value;
}

export async function schemaTypes(client: pg.Client): Promise<string> {
  const code = globSync("{src,jobs}/**/*.ts", { cwd: ROOT }).filter((file) => file !== FILE);
  const named = code.flatMap((file) =>
    [...readFileSync(`${ROOT}${file}`, "utf8").matchAll(NAMED_RELATION)].map(([, name]) => name),
  );
  const { rows } = await client.query<Column>(COLUMNS, [named]);
  const relations = Map.groupBy(rows, ({ relation }) => relation);
  const lines = [...relations].flatMap(([relation, columns]) => [
    `  "${relation}": {`,
    ...columns.map((column) => `    ${column.name}: ${typeOf(column)};`),
    "  };",
  ]);
  return `${HEAD}${lines.join("\n")}\n}\n`;
}

const HEAD = `// biome-ignore-all format: \`npm run schema\` makes this file from the migrated database.
import type { Generated, GeneratedAlways } from "kysely";
import type { Stride } from "../../domain/time/stride.ts";
import type { Measure, Meter } from "../../domain/usage/meter.ts";
import type { Dimension, GroupBy } from "../../domain/usage/record.ts";

/** Tables, and the views that the code names. Any column of a view may be null. */
export interface Schema {
`;

const COLUMNS = `
  SELECT r.name AS relation, quote_ident(a.attname) AS name, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS "isRequired",
         a.atthasdef OR a.attidentity = 'd' AS "isDefault", a.attidentity = 'a' OR a.attgenerated = 's' AS "isAlways",
         (
           SELECT min(substring(pg_get_constraintdef(k.oid) FROM '^CHECK \\(\\(\\w+ = ANY \\((ARRAY\\[[^]]*\\])\\)\\)\\)$')) FROM pg_constraint k
           WHERE k.conrelid = c.oid AND k.contype = 'c' AND k.conkey = ARRAY[a.attnum]
         ) AS allowed
  FROM pg_class c
  CROSS JOIN LATERAL (SELECT c.relnamespace::regnamespace || '.' || c.relname AS name) r
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'usage'::regnamespace AND c.relname NOT LIKE 'kysely%'
     OR c.relkind IN ('v', 'm') AND r.name = ANY ($1)
  ORDER BY r.name COLLATE "C", a.attnum`;
