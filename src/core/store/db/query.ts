import { type Kysely, type SelectType, sql } from "kysely";
import type { Schema } from "./schema.ts";

export type Database = Kysely<Schema>;

type Camel<Name> = Name extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : Name;

export type Row<
  Table extends keyof Schema,
  Names extends Camel<keyof Schema[Table]> = Camel<keyof Schema[Table]>,
> = {
  readonly [Column in keyof Schema[Table] as Extract<Camel<Column>, Names>]: SelectType<
    Schema[Table][Column]
  >;
};

export function query<Row>(db: Database) {
  return async (text: TemplateStringsArray, ...values: readonly unknown[]): Promise<Row[]> =>
    (await sql<Row>(text, ...values).execute(db)).rows;
}

export function queryOne<Row>(db: Database) {
  return async (text: TemplateStringsArray, ...values: readonly unknown[]): Promise<Row> =>
    (await query<Row>(db)(text, ...values))[0] as Row;
}

export function queryValues<Value>(db: Database) {
  return async (text: TemplateStringsArray, ...values: readonly unknown[]): Promise<Value[]> =>
    (await query<Record<string, Value>>(db)(text, ...values)).map((row) => Object.values(row)[0] as Value);
}

export function change(db: Database) {
  return async (text: TemplateStringsArray, ...values: readonly unknown[]): Promise<number> =>
    Number((await sql(text, ...values).execute(db)).numAffectedRows ?? 0);
}
