import {
  CompiledQuery,
  type DatabaseConnection,
  type Driver,
  PostgresAdapter,
  PostgresDialect,
  type PostgresDialectConfig,
  PostgresDriver,
  type QueryExecutorProvider,
  sql,
  type TransactionSettings,
} from "kysely";
import { type Session, transactionSettings, WHERE_KNOWN } from "./session.ts";

/** Kysely's own key, so that this release and older ones, which lock the session, wait for each other. */
export const MIGRATION_LOCK = "3853314791062309107";

/** Locks migrations until the transaction ends. The server's limits would end the wait, or a long migration. */
export async function lockMigrations(db: QueryExecutorProvider): Promise<void> {
  await sql`set local lock_timeout = '1h'`.execute(db);
  await sql`set local statement_timeout = 0`.execute(db);
  await sql`set local idle_in_transaction_session_timeout = '60s'`.execute(db);
  await sql.raw(WHERE_KNOWN).execute(db);
  await sql`select pg_advisory_xact_lock(${sql.lit(MIGRATION_LOCK)}::bigint)`.execute(db);
}

/** Kysely locks the session. Behind a pooler in transaction mode, another client gets the session and the lock stays. */
class TransactionLockAdapter extends PostgresAdapter {
  override async acquireMigrationLock(db: QueryExecutorProvider): Promise<void> {
    await lockMigrations(db);
  }

  override async releaseMigrationLock(): Promise<void> {}
}

/** Limits how long a host that vanishes before its COMMIT holds the statement's locks: others wait without a limit. */
const WITHIN_STATEMENT = "SET LOCAL idle_in_transaction_session_timeout = '30s'";

/** Applies a session's settings in each transaction and single statement, if the pool's sessions lack them. */
class SettingDriver extends PostgresDriver {
  readonly #session: Session;
  readonly #prepared = new WeakSet<DatabaseConnection>();
  readonly #inTransaction = new WeakSet<DatabaseConnection>();

  constructor(config: PostgresDialectConfig, session: Session) {
    super(config);
    this.#session = session;
  }

  override async acquireConnection(): Promise<DatabaseConnection> {
    const connection = await super.acquireConnection();
    if (this.#prepared.has(connection)) return connection;
    this.#prepared.add(connection);
    const execute = connection.executeQuery.bind(connection);
    connection.executeQuery = async <R>(query: CompiledQuery) => {
      if (!this.#session.isPerTransaction || this.#inTransaction.has(connection)) return execute<R>(query);
      try {
        await execute(CompiledQuery.raw(`${this.#begin({}).sql}; ${WITHIN_STATEMENT}`));
        const result = await execute<R>(query);
        await execute(CompiledQuery.raw("COMMIT"));
        return result;
      } catch (error) {
        await execute(CompiledQuery.raw("ROLLBACK")).catch(() => {});
        throw error;
      }
    };
    return connection;
  }

  override async beginTransaction(
    connection: DatabaseConnection,
    settings: TransactionSettings,
  ): Promise<void> {
    this.#inTransaction.add(connection);
    if (!this.#session.isPerTransaction) return super.beginTransaction(connection, settings);
    try {
      await connection.executeQuery(this.#begin(settings));
    } catch (error) {
      // The transaction may have begun before a setting failed. Kysely rolls back only after a complete begin.
      await connection.executeQuery(CompiledQuery.raw("ROLLBACK")).catch(() => {});
      throw error;
    }
  }

  #begin({ isolationLevel = "read committed", accessMode }: TransactionSettings): CompiledQuery {
    const own = transactionSettings(this.#session.statementMs);
    return CompiledQuery.raw(`BEGIN ISOLATION LEVEL ${isolationLevel} ${accessMode ?? ""}; ${own}`);
  }

  override async releaseConnection(
    connection: Parameters<PostgresDriver["releaseConnection"]>[0],
  ): Promise<void> {
    this.#inTransaction.delete(connection);
    await super.releaseConnection(connection);
  }
}

export class StoreDialect extends PostgresDialect {
  readonly #config: PostgresDialectConfig;
  readonly #session: Session;

  constructor(config: PostgresDialectConfig, session: Session) {
    super(config);
    this.#config = config;
    this.#session = session;
  }

  override createAdapter(): PostgresAdapter {
    return new TransactionLockAdapter();
  }

  override createDriver(): Driver {
    return new SettingDriver(this.#config, this.#session);
  }
}
