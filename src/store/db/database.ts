import { Kysely, PostgresDialect, sql } from "kysely";
import pg from "pg";
import { UnreachableError, UsageError } from "../../errors.ts";
import { withoutPassword } from "../../url.ts";
import { ClosingClient, SILENCE_LIMITS, type SilenceLimits, watchSilence } from "./silence.ts";
import type { DB } from "./tables.ts";
import { type Database, repeated, runOnce, type Transaction } from "./transaction.ts";

export type { Database, Transaction };

export interface Store {
  readonly db: Database;
  /** Runs `work` in one READ COMMITTED transaction, and repeats all of it after a retryable failure. */
  transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T>;
  /** Runs one statement outside a transaction, and repeats it after a retryable failure: it may run twice. */
  statement<T>(work: (db: Database) => Promise<T>): Promise<T>;
  /** Looks after a connection that is not the store's own, for the same silence. */
  watch(client: pg.Client): void;
  /** Closes all connections within a few seconds, whatever Postgres does. */
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

interface StoreOptions {
  readonly url: string;
  readonly maxConnections?: number;
  /** After so long Postgres ends a statement (SQLSTATE 57014). Default: never. */
  readonly statementTimeoutMs?: number;
  readonly limits?: SilenceLimits;
  /** Called when connections that fell silent were closed. */
  readonly onSilent?: (connections: number) => void;
}

/** Opens a pool; connects on first use. */
export function openStore(options: StoreOptions): Store {
  const { url, limits = SILENCE_LIMITS, onSilent = () => {} } = options;
  const silence = watchSilence(url, limits, onSilent);
  const settings = {
    Client: ClosingClient,
    closeMs: limits.answerMs,
    connectionString: url,
    max: options.maxConnections ?? 10,
    ...(options.statementTimeoutMs === undefined ? {} : { statement_timeout: options.statementTimeoutMs }),
    connectionTimeoutMillis: limits.connectMs,
    // A host that is cut off never learns that Postgres closed its connection: without keepalives its query and job would
    // hang forever. The connection ends after 10 s of silence and ten probes, one a second.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    application_name: "usage-etl",
    types,
  };
  const pool = new pg.Pool(settings);
  // Without a listener a killed backend is an uncaught exception. The running query reports it.
  pool.on("error", () => {});
  pool.on("connect", (client) => {
    client.on("error", () => {});
    silence.add(client);
  });

  const db = new Kysely<DB>({ dialect: new PostgresDialect({ pool }) }).withSchema("usage");
  return {
    db,
    transaction: (work) => repeated(() => runOnce({ pool, db }, work)),
    statement: (work) => repeated(() => work(db)),
    watch: silence.add,
    close: () => silence.closeAll(() => pool.end()),
  };
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
