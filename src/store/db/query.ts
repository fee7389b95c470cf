import { type Kysely, sql } from "kysely";

export type Database = Kysely<unknown>;

/** A tag for one statement, whose rows it returns: query<Row>(db)`select ...`. */
export function query<Row>(db: Database) {
  return async (text: TemplateStringsArray, ...values: readonly unknown[]): Promise<Row[]> =>
    (await sql<Row>(text, ...values).execute(db)).rows;
}

/** The same for a statement that always has one row. */
export function queryOne<Row>(db: Database) {
  return async (text: TemplateStringsArray, ...values: readonly unknown[]): Promise<Row> =>
    (await query<Row>(db)(text, ...values))[0] as Row;
}

/** The same for a statement with one column: its values. */
export function queryValues<Value>(db: Database) {
  return async (text: TemplateStringsArray, ...values: readonly unknown[]): Promise<Value[]> =>
    (await query<Record<string, Value>>(db)(text, ...values)).map((row) => Object.values(row)[0] as Value);
}

/** A tag for one statement that changes rows: how many it changed. */
export function change(db: Database) {
  return async (text: TemplateStringsArray, ...values: readonly unknown[]): Promise<number> =>
    Number((await sql(text, ...values).execute(db)).numAffectedRows ?? 0);
}
