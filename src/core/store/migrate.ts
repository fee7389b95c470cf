import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";
import { sql } from "kysely";
import { type Migration, type MigrationResultSet, Migrator } from "kysely/migration";
import { EtlError, reasonOf } from "../base/errors.ts";
import { ROOT } from "../base/root.ts";
import type { Database, Store } from "./db/database.ts";
import { lockMigrations } from "./db/dialect.ts";
import { MIGRATIONS, migrationNames, newerMigrations, pendingMigrations } from "./db/schema-version.ts";
import { requireSuitable } from "./db/server.ts";
import { analyzeStale } from "./db/statistics.ts";
import { recomputeCharges } from "./months/charges.ts";

const REPORTING = new URL("sql/reporting/", ROOT);

interface MigrateResult {
  readonly applied: string[];
  /** Migrations of a newer release. If there are any, this call did nothing, and the newer views stay. */
  readonly newer: string[];
  readonly missingRoles: string[];
}

/**
 * Brings schema and views up to date. Leaves them alone if they are of a newer release, with which this release works. Advisory
 * locks make parallel starts safe. Errors: `migration_failed`; `schema_in_use` if a long report locks what has to change;
 * `postgres_too_old`, `postgres_encoding`.
 */
export async function migrate(
  store: Store,
  lockRetry: SchemaLockRetry = SCHEMA_LOCK_RETRY,
): Promise<MigrateResult> {
  await requireSuitable(store);
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
      message: `Migration ${failed?.migrationName ?? "(none started)"} failed: ${reasonOf(error)}`,
      next: "The migration was rolled back. Correct the cause, then run `usage-etl migrate` again.",
      cause: error,
    });
  }
  const missingRoles = await ensureReaders(store.db);
  await replaceViews(store, lockRetry);
  await followRulesOfCharges(store);
  await analyzeStale(store.db);
  return {
    applied: (results ?? []).filter((r) => r.status === "Success").map((r) => r.migrationName),
    newer: [],
    missingRoles,
  };
}

async function migrateTables(db: Database, lockRetry: SchemaLockRetry) {
  return withSchemaLock(db, lockRetry, async (lockTimeout) => {
    let outcome: MigrationResultSet = {};
    try {
      await db.transaction().execute(async (transaction) => {
        // Two sessions that create Kysely's own tables at once would fail.
        await lockMigrations(transaction);
        outcome = await migrator(transaction, lockTimeout).migrateToLatest();
        if (outcome.error !== undefined) throw outcome.error;
      });
    } catch (error) {
      const { code } = error as { code?: string };
      // A failure to lock is retried. The caller reports other errors with the name of the migration.
      if (outcome.error === undefined || code === "55P03" || code === "40P01") throw error;
    }
    return outcome;
  });
}

function migrator(db: Database, lockTimeout: string): Migrator {
  return new Migrator({
    db,
    migrationTableSchema: "usage",
    // Refuses a migration that fills a gap in the numbers (sql/migrations/README.md).
    allowUnorderedMigrations: false,
    provider: {
      async getMigrations() {
        const migrations: Record<string, Migration> = {};
        for (const name of await migrationNames()) {
          const timed = `SET LOCAL lock_timeout = '${lockTimeout}'; ${await migrationText(name)}`;
          migrations[name] = { up: async (database) => void (await sql.raw(timed).execute(database)) };
        }
        return migrations;
      },
    },
  });
}

async function migrationText(name: string): Promise<string> {
  const folder = new URL(`${name}/`, MIGRATIONS);
  if (existsSync(folder)) return (await sqlTexts(folder)).join("\n");
  return readFile(new URL(`${name}.sql`, MIGRATIONS), "utf8");
}

async function sqlTexts(folder: URL): Promise<string[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".sql")).sort();
  return Promise.all(names.map((name) => readFile(new URL(name, folder), "utf8")));
}

/** `IF NOT EXISTS` races with other sessions: a unique violation means that another session created the schema. */
async function createSchema(db: Database, name: string): Promise<void> {
  try {
    await sql`create schema if not exists ${sql.id(name)}`.execute(db);
  } catch (error) {
    const code = (error as { code?: string }).code;
    if (code !== "23505" && code !== "42P06") throw error;
  }
}

const SCHEMAS_OF_VIEWS = ["reporting", "reporting_detail"];

const READERS = ["usage_reader", "usage_reader_masked"];

async function ensureReaders(db: Database): Promise<string[]> {
  const missing: string[] = [];
  for (const role of READERS) {
    const { rows } = await sql`select from pg_roles where rolname = ${role}`.execute(db);
    if (rows.length > 0) continue;
    try {
      await sql`create role ${sql.id(role)} nologin`.execute(db);
      // Since Postgres 16 a login that is no superuser may not act as a role that it creates.
      const { rows: usable } = await sql`select where pg_has_role(${role}, 'usage')`.execute(db);
      if (usable.length === 0) await sql`grant ${sql.id(role)} to current_user`.execute(db);
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
  for (const schema of SCHEMAS_OF_VIEWS) await createSchema(store.db, schema);
  const files = await sqlTexts(REPORTING);
  await withSchemaLock(store.db, lockRetry, (lockTimeout) =>
    store.transaction(async ({ client }) => {
      // Two sessions that replace the same views would deadlock. This wait has no lock timeout.
      await client.query("SELECT pg_advisory_xact_lock(hashtext('usage-etl reporting'))");
      await client.query(`SET LOCAL lock_timeout = '${lockTimeout}'`);
      for (const text of files) await client.query(text);
    }),
  );
}

/** Computes all charges anew if an earlier release stored them by other rules. Parallel starts wait for the first. */
async function followRulesOfCharges(store: Store): Promise<void> {
  const rules = createHash("sha256")
    .update((await sqlTexts(REPORTING)).join())
    .digest("hex");
  const stored = sql<{ rules: string | null }>`
    select obj_description('usage.keep_charges(smallint, date, integer[], text[], datemultirange)'::regprocedure) as rules
  `;
  const isCurrent = async (db: Database) => (await stored.execute(db)).rows[0]?.rules === rules;
  if (await isCurrent(store.db)) return;
  await store.transaction(async ({ db }) => {
    // This wait has no lock timeout: years of many workspaces take a minute.
    await sql`set local lock_timeout = 0`.execute(db);
    await sql`select pg_advisory_xact_lock(hashtext('usage-etl charges'))`.execute(db);
    if (await isCurrent(db)) return;
    await recomputeCharges(db);
    await sql`comment on function usage.keep_charges (smallint, date, integer[], text[], datemultirange) is ${sql.lit(rules)}`.execute(
      db,
    );
  });
}

export interface SchemaLockRetry {
  readonly lockMs: number;
  readonly attempts: number;
  readonly pause: (ms: number) => Promise<unknown>;
}

/** Retries for about two minutes in all. Reports that begin meanwhile wait two seconds at a time. */
const SCHEMA_LOCK_RETRY: SchemaLockRetry = { lockMs: 2_000, attempts: 30, pause: wait };

const HELD_UP = new Set(["55P03", "40P01"]);

/**
 * Repeats `work`, which changes tables or views in one transaction, while another session holds a lock. Error after the last
 * attempt: `schema_in_use`, which names the session.
 */
async function withSchemaLock<T>(
  db: Database,
  { lockMs, attempts, pause }: SchemaLockRetry,
  work: (lockTimeout: string) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work(`${lockMs}ms`);
    } catch (error) {
      if (!HELD_UP.has((error as { code?: string }).code ?? "")) throw error;
      if (attempt >= attempts) throw await inUse(db, error);
      // The pause is longer than the wait for the lock, and random, so that two sessions do not keep colliding.
      await pause(lockMs * (1 + Math.random()));
    }
  }
}

async function inUse(db: Database, cause: unknown): Promise<EtlError> {
  const { rows } = await sql<{ pid: number; who: string; seconds: number; held: string; query: string }>`
    select a.pid, concat_ws(', ', a.usename, nullif(a.application_name, '')) as who,
           extract(epoch from now() - a.xact_start)::integer as seconds,
           min(c.relnamespace::regnamespace || '.' || c.relname) as held, left(a.query, 100) as query
    from pg_locks l
    join pg_class c on c.oid = l.relation and c.relnamespace in ('usage'::regnamespace, 'reporting'::regnamespace, 'reporting_detail'::regnamespace)
    join pg_stat_activity a on a.pid = l.pid
    where l.granted and l.locktype = 'relation' and l.pid <> pg_backend_pid()
      and l.database = (select oid from pg_database where datname = current_database())
    group by a.pid, a.usename, a.application_name, a.xact_start, a.query
    order by a.xact_start
    limit 1
  `.execute(db);
  const holder = rows[0];
  const about =
    holder === undefined
      ? "The transaction has ended meanwhile."
      : `Process ${holder.pid} (${holder.who}) has held ${holder.held} for ${holder.seconds} s with: ${holder.query}`;
  const end = holder === undefined ? "" : `, or end it with SELECT pg_terminate_backend(${holder.pid}),`;
  return new EtlError({
    code: "schema_in_use",
    message: `A long transaction uses tables or views, so they were not changed. ${about}`,
    next: `Wait until it ends${end} and run \`usage-etl migrate\` again. Nothing is half done.`,
    retryable: true,
    cause,
  });
}
