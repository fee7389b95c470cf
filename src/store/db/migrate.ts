import { readdir, readFile } from "node:fs/promises";
import { sql } from "kysely";
import { type Migration, Migrator } from "kysely/migration";
import { EtlError } from "../../errors.ts";
import type { Database, Store } from "./database.ts";
import { expandDimensions } from "./dimensions.ts";
import { SCHEMA_LOCK_RETRY, type SchemaLockRetry, withSchemaLock } from "./schema-lock.ts";
import { analyzeStale } from "./statistics.ts";

const MIGRATIONS = new URL("../../../sql/migrations/", import.meta.url);
const REPORTING = new URL("../../../sql/reporting/", import.meta.url);

interface MigrateResult {
  /** Names of the migrations that this call applied, in order. */
  readonly applied: string[];
  /** Migrations of a newer release that this database has. Then this call did nothing, and the newer views stay. */
  readonly newer: string[];
  /** SQL that a superuser must run because this role may not create roles; empty if the roles exist. */
  readonly missingRoles: string[];
}

/**
 * Brings schema and views up to date. Leaves those of a newer release alone: this release works on them, and would only
 * undo the views. Kysely's migration lock makes parallel starts safe. The views are replaced in place afterwards, under an
 * advisory lock. Tables without statistics are analyzed. Errors: `migration_failed`; `schema_in_use` if a long report locks
 * what has to change.
 */
export async function migrate(
  store: Store,
  lockRetry: SchemaLockRetry = SCHEMA_LOCK_RETRY,
): Promise<MigrateResult> {
  await createSchema(store.db, "usage");
  const newer = await newerMigrations(store.db);
  if (newer.length > 0 && (await pendingMigrations(store.db)).length === 0) {
    return { applied: [], newer, missingRoles: [] };
  }
  const { error, results } = await migrateTables(store.db, lockRetry);
  const failed = results?.find((result) => result.status === "Error");
  if (error !== undefined) {
    throw new EtlError({
      code: "migration_failed",
      message: `Migration ${failed?.migrationName ?? "(none started)"} failed: ${error instanceof Error ? error.message : String(error)}`,
      next: "It was rolled back. Fix what the message names, then run `usage-etl migrate` again.",
      cause: error,
    });
  }
  const missingRoles = await ensureReaders(store.db);
  await replaceViews(store, lockRetry);
  await analyzeStale(store.db);
  return {
    applied: (results ?? []).filter((r) => r.status === "Success").map((r) => r.migrationName),
    newer: [],
    missingRoles,
  };
}

/** Applies all pending migrations in one transaction. */
async function migrateTables(db: Database, lockRetry: SchemaLockRetry) {
  return withSchemaLock(db, lockRetry, async (lockTimeout) => {
    const outcome = await migrator(db, lockTimeout).migrateToLatest();
    const { code } = (outcome.error ?? {}) as { code?: string };
    // A lock: thrown, so that it is tried again. The caller reports all other errors with the name of the migration.
    if (code === "55P03" || code === "40P01") throw outcome.error;
    return outcome;
  });
}

/** Names of migrations that the database lacks. Empty means that the schema is new enough. */
export async function pendingMigrations(db: Database): Promise<string[]> {
  const migrations = await migrator(db).getMigrations();
  return migrations.filter((m) => m.executedAt === undefined).map((m) => m.name);
}

/** Names of migrations in the database that this release does not know. */
async function newerMigrations(db: Database): Promise<string[]> {
  const { rows: found } = await sql<{ there: boolean }>`
    select to_regclass('usage.kysely_migration') is not null as there
  `.execute(db);
  if (found[0]?.there !== true) return [];
  const known = (await sqlFiles(MIGRATIONS)).map(({ name }) => name);
  const { rows } = await sql<{ name: string }>`
    select name from usage.kysely_migration where name <> all (${known}::text[]) order by name
  `.execute(db);
  return rows.map(({ name }) => name);
}

function migrator(db: Database, lockTimeout = "0"): Migrator {
  return new Migrator({
    db,
    migrationTableSchema: "usage",
    // Refuses a migration that fills a gap in the numbers (sql/migrations/README.md).
    allowUnorderedMigrations: false,
    provider: {
      async getMigrations() {
        const migrations: Record<string, Migration> = {};
        for (const { name, text } of await sqlFiles(MIGRATIONS)) {
          const timed = `SET LOCAL lock_timeout = '${lockTimeout}'; ${text}`;
          migrations[name] = { up: async (database) => void (await sql.raw(timed).execute(database)) };
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

/** `IF NOT EXISTS` races with other sessions: the unique violation of the second one means that the schema exists. */
async function createSchema(db: Database, name: string): Promise<void> {
  try {
    await sql`create schema if not exists ${sql.id(name)}`.execute(db);
  } catch (error) {
    const code = (error as { code?: string }).code;
    if (code !== "23505" && code !== "42P06") throw error;
  }
}

/** Roles that read the schema reporting. sql/reporting/95_grants.sql grants each its views. */
const READERS = ["usage_reader", "usage_reader_masked"];

/** Creates the missing roles. Returns the SQL for those that this role may not create. */
async function ensureReaders(db: Database): Promise<string[]> {
  const missing: string[] = [];
  for (const role of READERS) {
    const { rows } = await sql`select from pg_roles where rolname = ${role}`.execute(db);
    if (rows.length > 0) continue;
    try {
      await sql`create role ${sql.id(role)} nologin`.execute(db);
    } catch (error) {
      const code = (error as { code?: string }).code;
      // 42501 insufficient_privilege; 42710 duplicate_object, or 23505 from a parallel start.
      if (code === "42501") missing.push(`CREATE ROLE ${role} NOLOGIN;`);
      else if (code !== "42710" && code !== "23505") throw error;
    }
  }
  return missing;
}

async function replaceViews(store: Store, lockRetry: SchemaLockRetry): Promise<void> {
  await createSchema(store.db, "reporting");
  const files = await sqlFiles(REPORTING);
  await withSchemaLock(store.db, lockRetry, (lockTimeout) =>
    store.transaction(async ({ client }) => {
      // One session at a time: two that replace the same views would deadlock. This wait has no lock timeout.
      await client.query("SELECT pg_advisory_xact_lock(hashtext('usage-etl reporting'))");
      await client.query(`SET LOCAL lock_timeout = '${lockTimeout}'`);
      for (const { text } of files) await client.query(expandDimensions(text));
    }),
  );
}
