import type pg from "pg";
import { EtlError, UsageError } from "../../core/base/errors.ts";
import { ClosingClient } from "../../core/store/db/client.ts";
import type { Store } from "../../core/store/db/database.ts";
import { SILENCE_LIMITS } from "../../core/store/db/dead-connections.ts";
import { transactionSettings } from "../../core/store/db/session.ts";
import type { Found } from "./page.ts";

export type Reader = "usage_reader" | "usage_reader_masked";

interface QueryLimits {
  readonly rows: number;
  readonly bytes: number;
  readonly statementMs: number;
}

/** Classes of SQLSTATE that do not concern the statement: connection, resources, operator, system, internal. */
const NOT_OF_THE_STATEMENT = /^(08|53|57|58|XX)/;

/**
 * Runs one SELECT of a stranger with only a reader's rights (sql/reporting/97_query_as_reader.sql), on a separate connection.
 * Returns the rows from `start` on, as arrays: two columns may have one name. Errors: `query_refused`, `reader_role_missing`, and the driver's.
 */
export async function queryAsReader(
  store: Store,
  reader: Reader,
  { statement, start }: { statement: string; start: number },
  limits: QueryLimits,
): Promise<Found> {
  const client = new ClosingClient({
    address: store.address,
    connectionTimeoutMillis: SILENCE_LIMITS.connectMs,
    application_name: "usage-etl query",
  });
  client.on("error", () => {});
  try {
    await client.connect();
    store.watch(client);
    await client.query(
      `BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; ${transactionSettings(limits.statementMs)}`,
    );
    const { rows } = await client.query("SELECT to_regproc($1) IS NOT NULL AS exists", [
      `usage.query_as_${reader}`,
    ]);
    if (!rows[0]?.exists) throw roleMissing();
    await client.query("SAVEPOINT before_statement");
    try {
      const call = `SELECT usage.query_as_${reader}($1, $2, $3, $4) AS response`;
      const values = [statement, start, limits.rows, limits.bytes];
      const { rows } = await client.query<{ response: string }>(call, values);
      const { columns, rows: read, has_more: hasMore } = parseExactly(rows[0]?.response ?? "");
      return { facts: { columns }, rows: read, start, hasMore };
    } catch (error) {
      throw refused(error as pg.DatabaseError) ?? error;
    } finally {
      // A pooler may keep the session for others, and its locks outlive the transaction.
      await client
        .query("ROLLBACK TO before_statement; SELECT pg_advisory_unlock_all(); ROLLBACK")
        .catch(() => {});
    }
  } finally {
    await client.end().catch(() => {});
  }
}

/** `JSON.stringify` then writes each number with the digits that Postgres wrote, which a double may not hold. */
function parseExactly(text: string) {
  const { parse, rawJSON } = JSON as unknown as {
    parse(
      text: string,
      revive: (key: string, value: unknown, of: { source: string }) => unknown,
    ): {
      columns: string[];
      rows: unknown[][];
      has_more: boolean;
    };
    rawJSON(text: string): unknown;
  };
  return parse(text, (_, value, { source }) =>
    typeof value === "number" && String(value) !== source ? rawJSON(source) : value,
  );
}

function refused({ code, message, hint, cause }: pg.DatabaseError): UsageError | undefined {
  if (code === undefined || !/^\w{5}$/.test(code) || NOT_OF_THE_STATEMENT.test(code)) return undefined;
  return new UsageError({
    code: "query_refused",
    message: `Postgres refused the statement: ${message}.`,
    next: hint ?? "Send one SELECT over the views that list_views shows.",
    cause,
  });
}

function roleMissing(): EtlError {
  return new EtlError({
    code: "reader_role_missing",
    message: "The service is not allowed to act as the role that reads the views.",
    next: "Let an administrator of the database run `GRANT usage_reader, usage_reader_masked TO ROLE`, where ROLE is the role that runs `usage-etl migrate`. Then run `usage-etl migrate` again.",
  });
}
