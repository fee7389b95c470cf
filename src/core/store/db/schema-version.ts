import { readdir } from "node:fs/promises";
import { ROOT } from "../../base/root.ts";
import { type Database, query, queryValues } from "./query.ts";

export const MIGRATIONS = new URL("sql/migrations/", ROOT);

export async function pendingMigrations(db: Database): Promise<string[]> {
  const applied = new Set(await appliedMigrations(db));
  return (await migrationNames()).filter((name) => !applied.has(name));
}

export async function newerMigrations(db: Database): Promise<string[]> {
  const known = new Set(await migrationNames());
  return (await appliedMigrations(db)).filter((name) => !known.has(name));
}

/** Every command and readiness check calls this, and Kysely's Migrator would read every column of the database. */
async function appliedMigrations(db: Database): Promise<string[]> {
  const found = await query<{ there: boolean }>(db)`
    select to_regclass('usage.kysely_migration') is not null as there
  `;
  if (found[0]?.there !== true) return [];
  return queryValues<string>(db)`
    select name from usage.kysely_migration order by name
  `;
}

/** Each migration is a file of SQL, or a folder of such files. */
export async function migrationNames(): Promise<string[]> {
  const entries = await readdir(MIGRATIONS, { withFileTypes: true });
  const migrations = entries.filter((entry) => entry.isDirectory() || entry.name.endsWith(".sql"));
  return migrations.map(({ name }) => name.replace(/\.sql$/, "")).sort();
}
