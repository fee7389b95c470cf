import { Kysely, PostgresDialect, sql } from "kysely";
import pg from "pg";
import { UnreachableError, UsageError } from "../../errors.ts";
import { withoutPassword } from "../../url.ts";
import type { DB } from "./tables.ts";

export type Database = Kysely<DB>;

/** One connection inside one transaction: the typed builder, and the client beneath it for COPY. */
export interface Transaction {
  readonly db: Database;
  readonly client: pg.PoolClient;
}

export interface Store {
  readonly db: Database;
  /** Runs `work` in one READ COMMITTED transaction; the whole of it again where Postgres or the network asks for that. */
  transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T>;
  /** Runs one statement outside a transaction, again where Postgres or the network asks for that: it may happen twice. */
  statement<T>(work: (db: Database) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** What the driver hands out: bigint as a safe number, date as its text (a Date would shift it by the local offset). */
const types: pg.CustomTypesConfig = {
  getTypeParser(oid: number, format?: "text" | "binary") {
    if (oid === pg.types.builtins.INT8) return toSafeNumber;
    if (oid === pg.types.builtins.DATE) return (text: string) => text;
    return pg.types.getTypeParser(oid, format as "text");
  },
};

function toSafeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`bigint ${text} of Postgres is beyond 2^53`);
  return value;
}

/** Worth the whole transaction again: COMMIT may have happened, the fences make that harmless. */
const RETRYABLE_STATES = /^(40001|40P01|08\w{3}|57P0[123]|53300|25006)$/;
const LOST_CONNECTION = new Set(["ECONNRESET", "ECONNREFUSED", "EPIPE", "ETIMEDOUT"]);
const ATTEMPTS = 4;

function isRetryable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = (error as { code?: string }).code;
  if (code !== undefined) return RETRYABLE_STATES.test(code) || LOST_CONNECTION.has(code);
  // "Not queryable": the backend ended between two statements, and the next one found the connection gone.
  return /connection terminated|not queryable|timeout exceeded when trying to connect/i.test(error.message);
}

/** Opens a pool; connects on first use. */
export function openStore(options: { url: string; maxConnections?: number }): Store {
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.maxConnections ?? 10,
    connectionTimeoutMillis: 10_000,
    // Postgres gives up a host that was cut off, and that host never hears of it: without these a query that it waits
    // for, and the job behind it, would hang for ever. Given up after 10 s of silence and ten probes, one a second.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    application_name: "usage-etl",
    types,
  });
  // A killed backend is otherwise an uncaught exception; the query that was under way reports it.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));

  async function once<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    const client = await pool.connect();
    let broken: Error | undefined;
    try {
      // PgBouncer refuses start-up parameters, so the limits are set here, for this transaction. A host that vanishes
      // within one holds locks that others wait for, until its socket is given up: sooner than the idle time is over,
      // else each session of it that waits for them comes to hold them in turn. Keepalives notice a silent peer; one
      // that owes an acknowledgement is not sent any, and only the user timeout ends that (15 minutes otherwise).
      // The last one says that this release keeps the monthly totals itself: a trigger does it for older ones.
      await client.query(
        `BEGIN; SET LOCAL lock_timeout = '60s'; SET LOCAL statement_timeout = '10min';
         SET LOCAL idle_in_transaction_session_timeout = '30s';
         SET LOCAL tcp_keepalives_idle = 5; SET LOCAL tcp_keepalives_interval = 5; SET LOCAL tcp_keepalives_count = 3;
         SET LOCAL tcp_user_timeout = '20s'; SET LOCAL usage.keeps_months = 'on'`,
      );
      const result = await work({ db: over(client), client });
      await client.query("COMMIT");
      return result;
    } catch (error) {
      await client.query("ROLLBACK").catch((failure: Error) => {
        broken = failure;
      });
      throw error;
    } finally {
      client.release(broken);
    }
  }

  const db = new Kysely<DB>({ dialect: new PostgresDialect({ pool }) }).withSchema("usage");
  return {
    db,
    transaction: (work) => repeated(() => once(work)),
    statement: (work) => repeated(() => work(db)),
    async close() {
      await pool.end();
    },
  };
}

async function repeated<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt >= ATTEMPTS || !isRetryable(error)) throw error;
    }
  }
}

/** Kysely over one client that somebody else owns. */
function over(client: pg.PoolClient): Database {
  const lent = new Proxy(client, {
    get(target, property) {
      if (property === "release") return () => {};
      const value = Reflect.get(target, property, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return new Kysely<DB>({
    dialect: new PostgresDialect({ pool: { connect: async () => lent, end: async () => {}, options: {} } }),
  }).withSchema("usage");
}

/**
 * Errors: `postgres_unreachable` unless Postgres answers, `postgres_refused` where it does but not to this user or for
 * this database. The address is shown without its password.
 */
export async function checkReachable(store: Store, url: string): Promise<void> {
  try {
    await sql`select 1`.execute(store.db);
  } catch (cause) {
    // Class 28 is a refused log-in, 3D000 a database that does not exist: the server is there, the URL is wrong.
    if (cause instanceof Error && "code" in cause && /^(28|3D)/.test(String(cause.code))) {
      throw new UsageError({
        code: "postgres_refused",
        message: `Postgres at ${withoutPassword(url)} refuses the connection: ${cause.message}.`,
        next: "Check user, password and database in DATABASE_URL.",
        cause,
      });
    }
    throw new UnreachableError({
      code: "postgres_unreachable",
      message: `Postgres at ${withoutPassword(url)} does not answer: ${cause instanceof Error ? cause.message : String(cause)}`,
      next: "Start it, or set DATABASE_URL to one that runs.",
      retryable: true,
      cause,
    });
  }
}
