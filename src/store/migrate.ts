import { readdir, readFile } from "node:fs/promises";
import { sql } from "kysely";
import { type Migration, Migrator } from "kysely/migration";
import { EtlError } from "../errors.ts";
import type { Database, Store } from "./database.ts";

const MIGRATIONS = new URL("../../sql/migrations/", import.meta.url);
const REPORTING = new URL("../../sql/reporting/", import.meta.url);

interface MigrateResult {
  /** Names of the migrations that this call applied, in order. */
  readonly applied: string[];
  /** SQL that a superuser must run because this role may not create roles; empty where the roles are in place. */
  readonly missingRoles: string[];
}

/**
 * Brings schema and views up to date. Kysely's migration lock makes parallel starts safe; the views are replaced in
 * place afterwards under an advisory lock of their own transaction.
 */
export async function migrate(store: Store): Promise<MigrateResult> {
  await createSchema(store.db, "usage");
  const { error, results } = await migrator(store.db).migrateToLatest();
  const failed = results?.find((result) => result.status === "Error");
  if (error !== undefined) {
    throw new EtlError({
      code: "migration_failed",
      message: `Migration ${failed?.migrationName ?? "(none started)"} failed: ${error instanceof Error ? error.message : String(error)}`,
      next: "Nothing of it was kept. Mend what the message names and run `usage-etl migrate` again.",
      cause: error,
    });
  }
  const missingRoles = await ensureReader(store.db);
  await replaceViews(store, missingRoles.length === 0);
  return {
    applied: (results ?? []).filter((r) => r.status === "Success").map((r) => r.migrationName),
    missingRoles,
  };
}

/** Names of migrations that this code knows and the database has not: empty means the schema is new enough. */
export async function pendingMigrations(db: Database): Promise<string[]> {
  const migrations = await migrator(db).getMigrations();
  return migrations.filter((m) => m.executedAt === undefined).map((m) => m.name);
}

function migrator(db: Database): Migrator {
  return new Migrator({
    db,
    migrationTableSchema: "usage",
    // A newer release may have run first, and the previous one must go on working beside it.
    allowUnorderedMigrations: false,
    provider: {
      async getMigrations() {
        const migrations: Record<string, Migration> = {};
        for (const { name, text } of await sqlFiles(MIGRATIONS)) {
          migrations[name] = { up: async (database) => void (await sql.raw(text).execute(database)) };
        }
        return migrations;
      },
    },
  });
}

async function sqlFiles(folder: URL): Promise<{ name: string; text: string }[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".sql")).sort();
  return Promise.all(
    names.map(async (name) => ({
      name: name.replace(/\.sql$/, ""),
      text: await readFile(new URL(name, folder), "utf8"),
    })),
  );
}

/** `IF NOT EXISTS` still races with another session that creates it: the loser's unique violation means it is there. */
async function createSchema(db: Database, name: string): Promise<void> {
  try {
    await sql`create schema if not exists ${sql.id(name)}`.execute(db);
  } catch (error) {
    const code = (error as { code?: string }).code;
    if (code !== "23505" && code !== "42P06") throw error;
  }
}

async function ensureReader(db: Database): Promise<string[]> {
  try {
    await sql`create role usage_reader nologin`.execute(db);
  } catch (error) {
    const code = (error as { code?: string }).code;
    // 42710 duplicate_object, 23505 the same from a parallel start; 42501 insufficient_privilege.
    if (code === "42710" || code === "23505") return [];
    if (code !== "42501") throw error;
    const { rows } = await sql`select 1 from pg_roles where rolname = 'usage_reader'`.execute(db);
    return rows.length > 0 ? [] : ["CREATE ROLE usage_reader NOLOGIN;"];
  }
  return [];
}

async function replaceViews(store: Store, grant: boolean): Promise<void> {
  await createSchema(store.db, "reporting");
  const files = await sqlFiles(REPORTING);
  await store.transaction(async ({ client }) => {
    // One at a time: two sessions that replace the same views would deadlock.
    await client.query("SELECT pg_advisory_xact_lock(hashtext('usage-etl reporting'))");
    await client.query("SET LOCAL lock_timeout = '10s'");
    for (const { text } of files) await client.query(text);
    if (!grant) return;
    await client.query(
      "GRANT USAGE ON SCHEMA reporting TO usage_reader; GRANT SELECT ON ALL TABLES IN SCHEMA reporting TO usage_reader",
    );
  });
}
