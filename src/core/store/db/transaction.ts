import { setTimeout as wait } from "node:timers/promises";
import { Kysely, PostgresDialect } from "kysely";
import type pg from "pg";
import type { Pool } from "./pool.ts";
import { type Database, query } from "./query.ts";
import { transactionSettings } from "./session.ts";

export interface Transaction {
  readonly db: Database;
  readonly client: pg.PoolClient;
}

export interface TransactionOptions {
  /** Reads as of one instant, plus its own changes. It is repeated if another transaction changed the same rows. */
  readonly isOneInstant?: boolean;
}

const RETRYABLE_STATES = /^(40001|40P01|08\w{3}|57P0[123]|53300|25006)$/;
const LOST_CONNECTION = new Set(["ECONNRESET", "ECONNREFUSED", "EPIPE", "ETIMEDOUT", "postgres_silent"]);
const ATTEMPTS = 4;

/** How long the outcome of a COMMIT is awaited while Postgres still works on it. */
const OUTCOME_WITHIN_MS = 10_000;
const OUTCOME_EVERY_MS = 100;

// PgBouncer refuses most settings when a session begins, so all are set for this transaction. A host that vanishes within it
// holds locks until Postgres closes its socket. That must happen before the idle timeout, or each waiting session of that host
// gets the locks in turn. Keepalives notice a silent peer, except one that owes an acknowledgement: for it, only the user
// timeout applies (15 minutes by default).
// A managed Postgres may end any transaction early (transaction_timeout, from version 17): the limits here are for each part.
// keeps_digests: a change of records here ends the digests of its time only. Without this setting, it ends all digests.
// A statement of a load takes seconds. If it takes ten minutes, it waits in vain.
const beginOf = ({
  isOneInstant = false,
}: TransactionOptions) => `BEGIN ISOLATION LEVEL ${isOneInstant ? "REPEATABLE READ" : "READ COMMITTED"};
  ${transactionSettings(600_000)}; SET LOCAL lock_timeout = '60s';
  SET LOCAL idle_in_transaction_session_timeout = '30s';
  SET LOCAL tcp_keepalives_idle = 5; SET LOCAL tcp_keepalives_interval = 5; SET LOCAL tcp_keepalives_count = 3;
  SET LOCAL tcp_user_timeout = '20s'; SET LOCAL usage.keeps_digests = 'on';
  SELECT pg_current_xact_id()::text AS xid, extract(epoch FROM pg_postmaster_start_time())::text AS server`;

interface Identity {
  readonly xid: string;
  /** Start of the server: after a crash or a failover, another transaction may have the same number. */
  readonly server: string;
}

export async function runOnce<T>(
  { pool, db, ...options }: { pool: Pool; db: Database } & TransactionOptions,
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  let own: Identity;
  let result: T;
  try {
    const begun = (await client.query(beginOf(options))) as unknown as readonly pg.QueryResult<Identity>[];
    own = begun.at(-1)?.rows[0] as Identity;
    result = await work({ db: over(client), client });
  } catch (error) {
    const broken = await client.query("ROLLBACK").then(
      () => undefined,
      (failure: Error) => failure,
    );
    client.release(broken);
    throw error;
  }
  try {
    await client.query("COMMIT");
    client.release();
  } catch (error) {
    client.release(error as Error);
    // If no response came, the transaction may have committed. Then a repetition or an error would be wrong.
    if (!isRetryable(error) || !(await repeated(() => hasCommitted(db, own)))) throw error;
  }
  return result;
}

/** False also after a restart of the server. A load that had committed is then repeated, and finds its own fetch number. */
async function hasCommitted(db: Database, { xid, server }: Identity): Promise<boolean> {
  for (let waited = 0; waited < OUTCOME_WITHIN_MS; waited += OUTCOME_EVERY_MS) {
    const rows = await query<{ status: "in progress" | "committed" | "aborted" | null }>(db)`
      select pg_xact_status(${xid}::text::xid8) as status
      where extract(epoch from pg_postmaster_start_time())::text = ${server}
    `;
    if (rows[0]?.status !== "in progress") return rows[0]?.status === "committed";
    await wait(OUTCOME_EVERY_MS);
  }
  return false;
}

export async function repeated<T>(work: () => Promise<T>, mayRepeat = () => true): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt >= ATTEMPTS || !isRetryable(error) || !mayRepeat()) throw error;
    }
  }
}

function isRetryable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = (error as { code?: string }).code;
  if (code !== undefined) return RETRYABLE_STATES.test(code) || LOST_CONNECTION.has(code);
  // "Not queryable": the backend ended between two statements.
  return /connection terminated|not queryable|timeout exceeded when trying to connect/i.test(error.message);
}

function over(client: pg.PoolClient): Database {
  const lent = new Proxy(client, {
    get(target, property) {
      if (property === "release") return () => {};
      const value = Reflect.get(target, property, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return new Kysely({
    dialect: new PostgresDialect({ pool: { connect: async () => lent, end: async () => {}, options: {} } }),
  });
}
