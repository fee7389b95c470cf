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
import { WITHOUT_TRANSACTION_TIMEOUT } from "./client.ts";

/** Kysely's own key, so that releases that lock the session and this one wait for each other. */
export const MIGRATION_LOCK = "3853314791062309107";

/** One session at a time migrates, until its transaction ends. The server's limits would end the wait, or a long migration. */
export async function lockMigrations(db: QueryExecutorProvider): Promise<void> {
  await sql`set local lock_timeout = '1h'`.execute(db);
  await sql`set local statement_timeout = 0`.execute(db);
  await sql`set local idle_in_transaction_session_timeout = '60s'`.execute(db);
  await sql.raw(WITHOUT_TRANSACTION_TIMEOUT).execute(db);
  await sql`select pg_advisory_xact_lock(${sql.lit(MIGRATION_LOCK)}::bigint)`.execute(db);
}

/** Kysely locks the session. Behind a pooler in transaction mode another client gets the session next, and the lock would stay. */
class TransactionLockAdapter extends PostgresAdapter {
  override async acquireMigrationLock(db: QueryExecutorProvider): Promise<void> {
    await lockMigrations(db);
  }

  override async releaseMigrationLock(): Promise<void> {}
}

type Limit = () => number | undefined;

/** Sets the limit of a transaction, and gives one to a statement that has none. */
class LimitedDriver extends PostgresDriver {
  readonly #limit: Limit;
  readonly #limited = new WeakSet<DatabaseConnection>();
  readonly #inTransaction = new WeakSet<DatabaseConnection>();

  constructor(config: PostgresDialectConfig, limit: Limit) {
    super(config);
    this.#limit = limit;
  }

  override async acquireConnection(): Promise<DatabaseConnection> {
    const connection = await super.acquireConnection();
    if (this.#limited.has(connection)) return connection;
    this.#limited.add(connection);
    const execute = connection.executeQuery.bind(connection);
    connection.executeQuery = async <R>(query: CompiledQuery) => {
      const ms = this.#limit();
      if (ms === undefined || this.#inTransaction.has(connection)) return execute<R>(query);
      await execute(CompiledQuery.raw(`BEGIN; ${limitOf(ms)}`));
      try {
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
    await super.beginTransaction(connection, settings);
    const ms = this.#limit();
    if (ms !== undefined) await connection.executeQuery(CompiledQuery.raw(limitOf(ms)));
  }

  override async releaseConnection(
    connection: Parameters<PostgresDriver["releaseConnection"]>[0],
  ): Promise<void> {
    this.#inTransaction.delete(connection);
    await super.releaseConnection(connection);
  }
}

function limitOf(ms: number): string {
  return `SET LOCAL statement_timeout = ${ms}`;
}

export class StoreDialect extends PostgresDialect {
  readonly #config: PostgresDialectConfig;
  readonly #limit: Limit;

  constructor(config: PostgresDialectConfig, limit: Limit) {
    super(config);
    this.#config = config;
    this.#limit = limit;
  }

  override createAdapter(): PostgresAdapter {
    return new TransactionLockAdapter();
  }

  override createDriver(): Driver {
    return new LimitedDriver(this.#config, this.#limit);
  }
}
