import { UsageError } from "../../base/errors.ts";

/**
 * Settings that change what our SQL means, or how its values are written. A login or a database may have other defaults. The
 * values are Postgres's own, so a session of a pooler mostly has them. Only a benchmark changes one of these.
 * `default_transaction_read_only` is left out, because it protects a full disk or a copy.
 */
export const SESSION_SETTINGS: Record<string, string> = {
  IntervalStyle: "postgres",
  default_transaction_isolation: "read committed",
  search_path: "pg_catalog, pg_temp",
  array_nulls: "on",
  transform_null_equals: "off",
  bytea_output: "hex",
  extra_float_digits: "1",
  quote_all_identifiers: "off",
  lock_timeout: "0",
};

/** Poolers accept these settings when a session begins, and keep them for each client (PgBouncer from 1.18). */
export const CARRIED_SETTINGS: Readonly<Record<string, string>> = {
  DateStyle: "ISO, MDY",
  TimeZone: "UTC",
  standard_conforming_strings: "on",
};

/** Facts about a pool's sessions. Some are learned from its first connections, because a pooler may be in between. */
export interface Session {
  /** Longest statement, ms. Default: no limit. */
  readonly statementMs?: number | undefined;
  /** True: when a session begins, a pooler accepts only the settings that it hands on to the server. */
  isRefused: boolean;
  /** True: sessions lack the settings, so each transaction sets them. */
  isPerTransaction: boolean;
}

/** Settings that a session begins with. They override those of the URL, the login and the database. */
export function startupSettings(session: Session | undefined): Readonly<Record<string, string>> {
  if (session === undefined || session.isRefused) return CARRIED_SETTINGS;
  return {
    ...CARRIED_SETTINGS,
    ...SESSION_SETTINGS,
    statement_timeout: String(session.statementMs ?? 0),
    [NOTICES_LOSS]: LOSS_WITHIN,
  };
}

/**
 * How often Postgres checks, during a statement, whether its client is still there. By default it never does, so the statement
 * of a killed process keeps its locks to the end. Postgres on Windows refuses the setting.
 */
export const NOTICES_LOSS = "client_connection_check_interval";
const LOSS_WITHIN = "2s";

/**
 * Returns a statement that makes the settings until the transaction ends. Behind a pooler the next one may get another session.
 */
export function transactionSettings(statementMs = 0): string {
  const all = Object.entries({
    ...CARRIED_SETTINGS,
    ...SESSION_SETTINGS,
    statement_timeout: String(statementMs),
  });
  const calls = all.map(([name, value]) => `pg_catalog.set_config('${name}', '${value}', true)`);
  return `SELECT ${calls.join(", ")}; ${WHERE_KNOWN}`;
}

/**
 * For a transaction: lifts the server's limit for whole transactions and lets Postgres notice the loss of the client. Postgres
 * 15 and 16 refuse the name `transaction_timeout`.
 */
export const WHERE_KNOWN = `SELECT
  CASE WHEN pg_catalog.current_setting('transaction_timeout', true) IS NOT NULL THEN pg_catalog.set_config('transaction_timeout', '0', true) END,
  CASE WHEN pg_catalog.version() !~* 'visual c|msvc|mingw' THEN pg_catalog.set_config('${NOTICES_LOSS}', '${LOSS_WITHIN}', true) END`;

interface Found {
  readonly differs: boolean;
  readonly role: string;
}

/** SQL: whether a new session lacks a setting. Postgres searches pg_catalog first, even if `search_path` lacks it. */
export function sessionCheck({ statementMs = 0 }: Session): string {
  const equal = Object.entries({ ...CARRIED_SETTINGS, ...SESSION_SETTINGS }).map(([name, value]) => {
    const setting = `pg_catalog.current_setting('${name}')`;
    const isEqual = `${setting} = '${value}'`;
    return name === "search_path" ? `(${isEqual} OR ${setting} !~ 'pg_catalog')` : isEqual;
  });
  const limit = `pg_catalog.current_setting('statement_timeout')::interval = interval '${statementMs} ms'`;
  const unlimited = "coalesce(pg_catalog.current_setting('transaction_timeout', true), '0') = '0'";
  return `SELECT NOT (${[...equal, limit, unlimited].join(" AND ")}) AS differs,
    pg_catalog.current_setting('session_replication_role') AS role`;
}

export function takeCheck(session: Session, { differs, role }: Found): void {
  if (differs) session.isPerTransaction = true;
  // Only a superuser may reset this setting.
  if (role === "origin" || role === "local") return;
  throw new UsageError({
    code: "postgres_setting",
    message: `Postgres's session_replication_role is ${role}, so no trigger runs and stored days would become wrong.`,
    next: "Let a superuser run ALTER ROLE or ALTER DATABASE ... RESET session_replication_role, and try again.",
  });
}
