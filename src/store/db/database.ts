import { Kysely, PostgresDialect, sql } from "kysely";
import pg from "pg";
import { UnreachableError, UsageError } from "../../errors.ts";
import { withoutPassword } from "../../url.ts";
import type { DB } from "./tables.ts";

export type Database = Kysely<DB>;

/** One connection inside one transaction: the typed builder, and its client for COPY. */
export interface Transaction {
  readonly db: Database;
  readonly client: pg.PoolClient;
}

export interface Store {
  readonly db: Database;
  /** Runs `work` in one READ COMMITTED transaction, and repeats all of it after a retryable failure. */
  transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T>;
  /** Runs one statement outside a transaction, and repeats it after a retryable failure: it may run twice. */
  statement<T>(work: (db: Database) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** What the driver returns: bigint as a safe number, date as its text (a Date would shift it by the local offset). */
const types: pg.CustomTypesConfig = {
  getTypeParser(oid: number, format?: "text" | "binary") {
    if (oid === pg.types.builtins.INT8) return toSafeNumber;
    if (oid === pg.types.builtins.DATE) return (text: string) => text;
    return pg.types.getTypeParser(oid, format as "text");
  },
};

function toSafeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value))
    throw new RangeError(`Postgres returned the bigint ${text}, which is beyond 2^53`);
  return value;
}

/** After these the whole transaction is repeated. It may have committed: the fetch numbers make a repeated load harmless. */
const RETRYABLE_STATES = /^(40001|40P01|08\w{3}|57P0[123]|53300|25006)$/;
const LOST_CONNECTION = new Set(["ECONNRESET", "ECONNREFUSED", "EPIPE", "ETIMEDOUT"]);
const ATTEMPTS = 4;

function isRetryable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = (error as { code?: string }).code;
  if (code !== undefined) return RETRYABLE_STATES.test(code) || LOST_CONNECTION.has(code);
  // "Not queryable": the backend ended between two statements.
  return /connection terminated|not queryable|timeout exceeded when trying to connect/i.test(error.message);
}

/** Opens a pool; connects on first use. */
export function openStore(options: { url: string; maxConnections?: number }): Store {
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.maxConnections ?? 10,
    connectionTimeoutMillis: 10_000,
    // A host that is cut off never learns that Postgres closed its connection: without keepalives its query and job would
    // hang forever. The connection ends after 10 s of silence and ten probes, one a second.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    application_name: "usage-etl",
    types,
  });
  // Without a listener a killed backend is an uncaught exception. The running query reports it.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));

  async function once<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    const client = await pool.connect();
    let broken: Error | undefined;
    try {
      // PgBouncer refuses start-up parameters, so the limits are set here, for this transaction. A host that vanishes
      // within it holds locks until Postgres closes its socket. That must happen before the idle timeout, or each waiting
      // session of that host gets the locks in turn. Keepalives notice a silent peer. No keepalive goes to a peer that owes
      // an acknowledgement: there only the user timeout applies (15 minutes by default).
      // keeps_months: this release keeps the monthly totals itself; for older releases a trigger does (0030).
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

/** Kysely over a client that its caller releases. */
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
 * Errors: `postgres_unreachable` if Postgres does not answer, `postgres_refused` if it refuses the user or the database.
 * Messages show the address without its password.
 */
export async function checkReachable(store: Store, url: string): Promise<void> {
  try {
    await sql`select 1`.execute(store.db);
  } catch (cause) {
    // Class 28 is a refused log-in, 3D000 an unknown database: the server runs, but the URL is wrong.
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
      next: "Start it, or set DATABASE_URL to a running server.",
      retryable: true,
      cause,
    });
  }
}
