import { readdir, readFile } from "node:fs/promises";
import { sql } from "kysely";
import { type Migration, Migrator } from "kysely/migration";
import { EtlError } from "../../errors.ts";
import type { Database, Store } from "./database.ts";
import { expandDimensions } from "./dimensions.ts";
import { SCHEMA_LOCK_RETRY, type SchemaLockRetry, withSchemaLock } from "./schema-lock.ts";

const MIGRATIONS = new URL("../../../sql/migrations/", import.meta.url);
const REPORTING = new URL("../../../sql/reporting/", import.meta.url);

interface MigrateResult {
  /** Names of the migrations that this call applied, in order. */
  readonly applied: string[];
  /** Migrations of a newer release that ran here before: then nothing was done, and its views stay. */
  readonly newer: string[];
  /** SQL that a superuser must run because this role may not create roles; empty where the roles are in place. */
  readonly missingRoles: string[];
}

/**
 * Brings schema and views up to date. Those of a newer release are left alone: this one works on them as they are, and
 * would only take the views back. Kysely's migration lock makes parallel starts safe; the views are replaced in
 * place afterwards under an advisory lock of their own transaction. Errors: `migration_failed`; `schema_in_use` where a
 * long report holds what has to change.
 */
export async function migrate(
  store: Store,
  patience: SchemaLockRetry = SCHEMA_LOCK_RETRY,
): Promise<MigrateResult> {
  await createSchema(store.db, "usage");
  const newer = await newerMigrations(store.db);
  if (newer.length > 0 && (await pendingMigrations(store.db)).length === 0) {
    return { applied: [], newer, missingRoles: [] };
  }
  const { error, results } = await migrateTables(store.db, patience);
  const failed = results?.find((result) => result.status === "Error");
  if (error !== undefined) {
    throw new EtlError({
      code: "migration_failed",
      message: `Migration ${failed?.migrationName ?? "(none started)"} failed: ${error instanceof Error ? error.message : String(error)}`,
      next: "Nothing of it was kept. Mend what the message names and run `usage-etl migrate` again.",
      cause: error,
    });
  }
  const missingRoles = await ensureReaders(store.db);
  await replaceViews(store, patience);
  return {
    applied: (results ?? []).filter((r) => r.status === "Success").map((r) => r.migrationName),
    newer: [],
    missingRoles,
  };
}

/** All that are pending, in one transaction. */
async function migrateTables(db: Database, patience: SchemaLockRetry) {
  return withSchemaLock(db, patience, async (lockTimeout) => {
    const outcome = await migrator(db, lockTimeout).migrateToLatest();
    const { code } = (outcome.error ?? {}) as { code?: string };
    // Thrown, so that it is tried again; what else went wrong is told with the migration's name.
    if (code === "55P03" || code === "40P01") throw outcome.error;
    return outcome;
  });
}

/** Names of migrations that this code knows and the database has not: empty means the schema is new enough. */
export async function pendingMigrations(db: Database): Promise<string[]> {
  const migrations = await migrator(db).getMigrations();
  return migrations.filter((m) => m.executedAt === undefined).map((m) => m.name);
}

/** Names of migrations that the database has and this code does not know. */
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
    // A newer release may have run first, and the previous one must go on working beside it.
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

/** `IF NOT EXISTS` still races with another session that creates it: the loser's unique violation means it is there. */
async function createSchema(db: Database, name: string): Promise<void> {
  try {
    await sql`create schema if not exists ${sql.id(name)}`.execute(db);
  } catch (error) {
    const code = (error as { code?: string }).code;
    if (code !== "23505" && code !== "42P06") throw error;
  }
}

/** Roles that read the schema reporting; sql/reporting/95_grants.sql says what of it. */
const READERS = ["usage_reader", "usage_reader_masked"];

/** Creates the roles that are missing; returns the SQL for those that this one may not create. */
async function ensureReaders(db: Database): Promise<string[]> {
  const missing: string[] = [];
  for (const role of READERS) {
    const { rows } = await sql`select from pg_roles where rolname = ${role}`.execute(db);
    if (rows.length > 0) continue;
    try {
      await sql`create role ${sql.id(role)} nologin`.execute(db);
    } catch (error) {
      const code = (error as { code?: string }).code;
      // 42710 duplicate_object, 23505 the same from a parallel start; 42501 insufficient_privilege.
      if (code === "42501") missing.push(`CREATE ROLE ${role} NOLOGIN;`);
      else if (code !== "42710" && code !== "23505") throw error;
    }
  }
  return missing;
}

async function replaceViews(store: Store, patience: SchemaLockRetry): Promise<void> {
  await createSchema(store.db, "reporting");
  const files = await sqlFiles(REPORTING);
  await withSchemaLock(store.db, patience, (lockTimeout) =>
    store.transaction(async ({ client }) => {
      // One at a time: two sessions that replace the same views would deadlock. The other one may take its time.
      await client.query("SELECT pg_advisory_xact_lock(hashtext('usage-etl reporting'))");
      await client.query(`SET LOCAL lock_timeout = '${lockTimeout}'`);
      for (const { text } of files) await client.query(expandDimensions(text));
    }),
  );
}
