import { sql } from "kysely";
import { UsageError } from "../../base/errors.ts";
import { type Database, query, queryValues } from "../db/query.ts";
import type { ViewColumn } from "../db/views.ts";

export interface NamedWorkspace {
  readonly id: string;
  readonly name: string | null;
}

export async function readerOf(db: Database): Promise<string> {
  const [login] = await queryValues<string>(db)`select quote_ident(current_user) as login`;
  return login ?? "";
}

export async function namedWorkspaces(db: Database): Promise<NamedWorkspace[]> {
  return query<NamedWorkspace>(db)`
    select workspace_id as id, workspace_name as name from reporting.dim_workspace order by name, id
  `;
}

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

/** Throws `login_of_reader` if this login may not read the tables. The tables may not exist yet. */
export async function refuseReader(db: Database): Promise<void> {
  const rows = await query<{ may: boolean }>(db)`
    select has_schema_privilege(oid, 'usage') as may from pg_namespace where nspname = 'usage'
  `;
  if (rows[0]?.may !== false) return;
  throw new UsageError({
    code: "login_of_reader",
    message: `The login ${await readerOf(db)} may not read the tables of usage-etl.`,
    next: "Set DATABASE_URL to the login that runs `usage-etl migrate`. A reader's login can only run `export`.",
  });
}
