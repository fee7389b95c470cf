import { Kysely, sql } from "kysely";
import pg from "pg";
import { type Address, ClosingClient } from "./client.ts";
import { connectionError } from "./connection-error.ts";
import { SILENCE_LIMITS, type SilenceLimits, watchSilence } from "./dead-connections.ts";
import { StoreDialect } from "./dialect.ts";
import { currentOf } from "./pool.ts";
import type { Database } from "./query.ts";
import type { Session } from "./session.ts";
import { repeated, runOnce, type Transaction, type TransactionOptions } from "./transaction.ts";

export type { Database, Transaction };

export interface Store {
  readonly db: Database;
  readonly address: Address;
  readonly variable: string;
  /** READ COMMITTED unless `isOneInstant`. All of `work` is repeated after a retryable failure. */
  transaction<T>(work: (transaction: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>;
  /** Runs outside a transaction. `work` is repeated after a retryable failure, so it may run twice. */
  statement<T>(work: (db: Database) => Promise<T>): Promise<T>;
  watch(client: pg.Client): void;
  /** For shutdown: work waits for a silent Postgres for a few seconds only, and is not repeated. */
  hurry(): void;
  close(): Promise<void>;
}

/** Parses bigint as a safe number, date as text (a Date would shift it by the local offset). */
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

export interface StoreOptions {
  readonly url: Address;
  /** Name of the setting that has `url`, for errors. Default: DATABASE_URL. */
  readonly variable?: string;
  readonly maxConnections?: number;
  /** Postgres cancels a longer statement (SQLSTATE 57014). Default: no limit. */
  readonly statementTimeoutMs?: number;
  readonly limits?: SilenceLimits;
  readonly onSilent?: (connections: number) => void;
}

const ENDING_CONNECT_MS = 1_000;

export function openStore(options: StoreOptions): Store {
  const { url: address, variable = "DATABASE_URL", limits = SILENCE_LIMITS, onSilent = () => {} } = options;
  const silence = watchSilence(address, limits, onSilent);
  const session: Session = {
    statementMs: options.statementTimeoutMs,
    isRefused: false,
    isPerTransaction: false,
  };
  const settings = {
    Client: ClosingClient as unknown as typeof pg.Client,
    address,
    closeMs: limits.responseMs,
    max: options.maxConnections ?? 10,
    session,
    connectionTimeoutMillis: limits.connectMs,
    // A host that is cut off never learns that Postgres closed its connection. Without keepalives its query and job would
    // hang forever. The connection ends after 10 s of silence and ten probes, one a second.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    application_name: "usage-etl",
    types,
  };
  const connections = new pg.Pool(settings);
  // Without a listener a killed backend is an uncaught exception. The running query reports it.
  connections.on("error", () => {});
  connections.on("connect", (client) => {
    client.on("error", () => {});
    silence.add(client);
  });
  const pool = currentOf(connections, { address, variable, session });
  const dialect = new StoreDialect({ pool }, session);

  let isEnding = false;
  const again = <T>(work: () => Promise<T>) => repeated(work, () => !isEnding);

  const db: Database = new Kysely({ dialect });
  return {
    db,
    address,
    variable,
    transaction: (work, of) => again(() => runOnce({ pool, db, ...of }, work)),
    statement: (work) => again(() => work(db)),
    hurry: () => {
      isEnding = true;
      connections.options.connectionTimeoutMillis = ENDING_CONNECT_MS;
      silence.hurry();
    },
    watch: silence.add,
    close: () => silence.closeAll(() => connections.end()),
  };
}

/** Errors: `postgres_unreachable`, `postgres_tls`, `postgres_refused`. Messages omit the password. */
export async function checkReachable({ db, ...of }: Store): Promise<void> {
  try {
    await sql`select 1`.execute(db);
  } catch (cause) {
    throw connectionError(cause, of);
  }
}
