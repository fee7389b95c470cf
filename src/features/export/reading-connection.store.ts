import { sql } from "kysely";
import type pg from "pg";
import { EtlError, UnreachableError } from "../../core/base/errors.ts";
import { faultOf } from "../../core/base/faults.ts";
import { ClosingClient } from "../../core/store/db/client.ts";
import type { Store } from "../../core/store/db/database.ts";
import { SILENCE_LIMITS } from "../../core/store/db/dead-connections.ts";
import { transactionSettings } from "../../core/store/db/session.ts";

export interface ReadingAccess {
  readonly store: Store;
  readonly signal: AbortSignal;
}

const asText: pg.CustomTypesConfig = { getTypeParser: () => (text: string) => text };

/**
 * Reads many rows in one transaction on a separate connection, because the store's connections end an idle transaction. Values
 * are Postgres's texts, instants in UTC. An error of the output is thrown unchanged, others through `errorOf`.
 */
export async function onReadingConnection<T>(
  {
    store,
    signal,
    isolation,
    errorOf,
  }: ReadingAccess & {
    readonly isolation: "READ COMMITTED" | "REPEATABLE READ";
    readonly errorOf: (cause: unknown) => EtlError;
  },
  read: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new ClosingClient({
    address: store.address,
    connectionTimeoutMillis: SILENCE_LIMITS.connectMs,
    application_name: "usage-etl export",
    types: asText,
  });
  // The query that fails throws the error too.
  client.on("error", () => {});
  // If only the connection closed, Postgres would continue the query.
  const stop = () => void sql`select pg_cancel_backend(${pid})`.execute(store.db).catch(() => client.end());
  let pid = 0;
  signal.addEventListener("abort", stop, { once: true });
  try {
    await client.connect();
    store.watch(client);
    await client.query(
      `BEGIN ISOLATION LEVEL ${isolation} READ ONLY; ${transactionSettings()};
       SET LOCAL jit = off; SET LOCAL cursor_tuple_fraction = 1; SET LOCAL idle_in_transaction_session_timeout = 0`,
    );
    const { rows } = await client.query<[string]>({ text: "SELECT pg_backend_pid()", rowMode: "array" });
    pid = Number(rows[0]?.[0]);
    signal.throwIfAborted();
    return await read(client);
  } catch (cause) {
    signal.throwIfAborted();
    // The output failed. A silent connection counts as an interruption instead.
    if (cause instanceof EtlError && cause.code !== "postgres_silent") throw cause;
    throw errorOf(cause);
  } finally {
    signal.removeEventListener("abort", stop);
    // During a COPY, `end` closes the connection at once.
    await client.end().catch(() => {});
  }
}

/** An error of the reader. Its class tells the command whether Postgres is unreachable. */
export function interruption(facts: ConstructorParameters<typeof EtlError>[0]): EtlError {
  return faultOf(facts.cause) instanceof UnreachableError ? new UnreachableError(facts) : new EtlError(facts);
}
