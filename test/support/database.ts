import { randomBytes } from "node:crypto";
import pg from "pg";
import { inject } from "vitest";
import { poll } from "./poll.ts";
import { serviceUrl } from "./services.ts";

export interface TestDatabase {
  readonly url: string;
  drop(): Promise<void>;
}

let admins: Promise<pg.Pool> | undefined;

/**
 * Builds the template `name` unless another test file of this run has: `build` gets the URL of an empty database and
 * must have closed its connections when it resolves. Safe to call from every file that needs it.
 */
export async function ensureTemplate(name: string, build: (url: string) => Promise<void>): Promise<void> {
  const template = templateDatabase(name);
  const half = `${template}_half`;
  const admin = await (await maintenance()).connect();
  try {
    // Keeps the run's other workers out. A session lock, since CREATE DATABASE does not run inside a transaction.
    await admin.query("SELECT pg_advisory_lock(hashtextextended($1, 0))", [template]);
    const { rowCount } = await admin.query("SELECT FROM pg_database WHERE datname = $1", [template]);
    if (rowCount === 1) return;
    await admin.query(`DROP DATABASE IF EXISTS ${quoted(half)} WITH (FORCE)`);
    await admin.query(`CREATE DATABASE ${quoted(half)} TEMPLATE template0`);
    await build(await databaseUrl(half));
    // Only a complete template gets the name. Nobody may connect to it: CREATE DATABASE refuses a template in use.
    await untilUnused(admin, half, `the builder of template ${name}`);
    await admin.query(`ALTER DATABASE ${quoted(half)} RENAME TO ${quoted(template)}`);
    await admin.query(`ALTER DATABASE ${quoted(template)} ALLOW_CONNECTIONS false`);
  } finally {
    await admin.query("SELECT pg_advisory_unlock_all()");
    admin.release();
  }
}

export async function createTestDatabase(
  options: { template?: string; as?: string } = {},
): Promise<TestDatabase> {
  const pool = await maintenance();
  const name = `${inject("runPrefix")}db_${randomBytes(6).toString("hex")}`;
  const template = options.template === undefined ? "template0" : templateDatabase(options.template);
  await pool.query(
    `CREATE DATABASE ${quoted(name)} TEMPLATE ${quoted(template)} STRATEGY ${await fastestStrategy(pool)} ${options.as ?? ""}`,
  );
  return {
    url: await databaseUrl(name, isPooled() ? "pooler" : "postgres"),
    drop: async () => {
      try {
        await untilUnused(pool, name, "the test");
      } finally {
        // It may lie in memory.
        await pool.query(`DROP DATABASE ${quoted(name)} WITH (FORCE)`);
      }
    },
  };
}

async function untilUnused(admin: pg.Pool | pg.PoolClient, database: string, by: string): Promise<void> {
  await poll(
    async () => {
      const { rows } = await admin.query<{ application_name: string; query: string }>(
        "SELECT application_name, query FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'",
        [database],
      );
      if (rows.length === 0) return true;
      const last = rows.map(({ application_name, query }) => `${application_name || "(no name)"}: ${query}`);
      throw new Error(`${rows.length} connections left open by ${by}; they last ran\n${last.join("\n")}`);
    },
    { deadlineMs: 20_000 },
  );
}

async function fastestStrategy(pool: pg.Pool): Promise<string> {
  return (await isDurable(pool)) ? "wal_log" : "file_copy";
}

async function isDurable(pool: pg.Pool): Promise<boolean> {
  const { rows } = await pool.query<{ fsync: string }>("SHOW fsync");
  return rows[0]?.fsync !== "off";
}

function maintenance(): Promise<pg.Pool> {
  admins ??= serviceUrl("postgres").then((connectionString) => {
    const pool = new pg.Pool({ connectionString, max: 4, allowExitOnIdle: true });
    pool.on("error", () => {});
    return pool;
  });
  return admins;
}

/** Whether tests reach their databases through a pooler in transaction mode: `npm run test:pgbouncer`. */
export function isPooled(): boolean {
  return process.env.TEST_POOLER === "pgbouncer";
}

export async function pastPooler(url: string): Promise<string> {
  if (!isPooled() || new URL(url).host !== new URL(await serviceUrl("pooler")).host) return url;
  const { host } = new URL(await serviceUrl("postgres"));
  return Object.assign(new URL(url), { host }).href;
}

async function databaseUrl(name: string, server: "postgres" | "pooler" = "postgres"): Promise<string> {
  const url = new URL(await serviceUrl(server));
  url.pathname = `/${name}`;
  return url.href;
}

function templateDatabase(name: string): string {
  return `${inject("runPrefix")}template_${name}`;
}

function quoted(name: string): string {
  return pg.escapeIdentifier(name);
}
