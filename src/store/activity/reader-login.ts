import { sql } from "kysely";
import { UsageError } from "../../errors.ts";
import type { Database } from "../db/database.ts";
import type { ViewColumn } from "../export/views.ts";

export interface NamedWorkspace {
  readonly id: string;
  readonly name: string | null;
}

export async function readerOf(db: Database): Promise<string> {
  const { rows } = await sql<{ login: string }>`select quote_ident(current_user) as login`.execute(db);
  return rows[0]?.login ?? "";
}

export async function namedWorkspaces(db: Database): Promise<NamedWorkspace[]> {
  const { rows } = await sql<NamedWorkspace>`
    select workspace_id as id, workspace_name as name from reporting.dim_workspace order by name, id
  `.execute(db);
  return rows;
}

/** Whether Postgres accepts the text as a value of the column's type. */
export async function isValueOf(db: Database, { type }: ViewColumn, text: string): Promise<boolean> {
  try {
    await sql`select ${text}::text::${sql.raw(type)}`.execute(db);
    return true;
  } catch (error) {
    // Class 22: data exceptions.
    if (String((error as { code?: string }).code).startsWith("22")) return false;
    throw error;
  }
}

/** Error `login_of_reader`: this login may not read the tables. There may be no tables yet. */
export async function refuseReader(db: Database): Promise<void> {
  const { rows } = await sql<{ may: boolean }>`
    select has_schema_privilege(oid, 'usage') as may from pg_namespace where nspname = 'usage'
  `.execute(db);
  if (rows[0]?.may !== false) return;
  throw new UsageError({
    code: "login_of_reader",
    message: `The login ${await readerOf(db)} may not read the tables of usage-etl.`,
    next: "Set DATABASE_URL to the login that runs `usage-etl migrate`. A reader's login runs `export` only.",
  });
}
