import { sql } from "kysely";
import type pg from "pg";
import { to as copyTo } from "pg-copy-streams";
import { EtlError, UnreachableError, UsageError } from "../../errors.ts";
import type { Store } from "../db/database.ts";
import { ClosingClient, SILENCE_LIMITS } from "../db/silence.ts";
import type { CopyForm } from "./copy-forms.ts";
import { bindings, queryOf, type Selection } from "./view-query.ts";
import type { View } from "./views.ts";

/** A row as Postgres writes it: texts in the order of the columns, instants in UTC. */
export type TextRow = readonly (string | null)[];

export interface RowsWanted extends Selection {
  /** Looks after the connection, and cancels its statement when the signal aborts. */
  readonly store: Store;
  readonly url: string;
  readonly signal: AbortSignal;
}

/** Rows per FETCH. More are not faster. */
const BATCH = 1000;
/** How long the reader of the output may pause. Then the connection is closed, because its snapshot holds back vacuum. */
const LONGEST_PAUSE_MS = 600_000;
/** SQLSTATE with which the functions refuse an instant. */
const INVALID_PARAMETER = "22023";

const asText: pg.CustomTypesConfig = { getTypeParser: () => (text: string) => text };

/**
 * Passes on what Postgres writes for a form of the rows, in pieces that begin and end anywhere. A query that fails at once
 * writes nothing, not even the header: Postgres sends that with the first rows or the error. Returns the number of rows.
 */
export function copyRows(
  wanted: RowsWanted,
  { query, options }: CopyForm,
  write: (piece: Uint8Array) => Promise<void>,
): Promise<number> {
  return onConnection(wanted, async (client) => {
    const stream = client.query(copyTo(`COPY (${query}) TO STDOUT (${options})`));
    // Of a connection that is closed while nobody waits for rows: the statement has been given up.
    stream.on("error", () => {});
    for await (const piece of stream) await inTime(client, write(piece));
    // The stream ends before Postgres has said how many rows there were.
    await client.query("COMMIT");
    return stream.rowCount;
  });
}

/** Passes on rows in batches. Returns their number. */
export function readRows(
  wanted: RowsWanted,
  write: (rows: readonly TextRow[]) => Promise<void>,
): Promise<number> {
  return onConnection(wanted, async (client) => {
    await client.query(`DECLARE rows NO SCROLL CURSOR FOR ${queryOf(wanted)}`);
    for (let count = 0; ; ) {
      wanted.signal.throwIfAborted();
      const { rows } = await client.query<string[]>({ text: `FETCH ${BATCH} FROM rows`, rowMode: "array" });
      if (rows.length === 0) return count;
      await inTime(client, write(rows));
      count += rows.length;
    }
  });
}

/**
 * Reads on a connection of its own, because connections of the store end an idle transaction. One statement reads all rows, so
 * they are as of one instant. Errors: `as_of_refused`; `export_interrupted` if Postgres ends it.
 */
async function onConnection(
  wanted: RowsWanted,
  read: (client: pg.Client) => Promise<number>,
): Promise<number> {
  const { store, url, view, signal } = wanted;
  const client = new ClosingClient({
    connectionString: url,
    connectionTimeoutMillis: SILENCE_LIMITS.connectMs,
    application_name: "usage-etl export",
    types: asText,
  });
  // The failing query throws the error where it is awaited.
  client.on("error", () => {});
  // Closing the connection alone would leave the query running in Postgres.
  const stop = () => void sql`select pg_cancel_backend(${pid})`.execute(store.db).catch(() => client.end());
  let pid = 0;
  signal.addEventListener("abort", stop, { once: true });
  try {
    await client.connect();
    store.watch(client);
    // Not REPEATABLE READ, in which the functions as of an instant answer fewer instants.
    await client.query(
      `BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO';
       SET LOCAL jit = off; SET LOCAL cursor_tuple_fraction = 1; SET LOCAL statement_timeout = 0;
       SET LOCAL idle_in_transaction_session_timeout = 0`,
    );
    const { rows: own } = await client.query<[string]>({ ...bindings(wanted), rowMode: "array" });
    pid = Number(own[0]?.[0]);
    return await read(client);
  } catch (cause) {
    signal.throwIfAborted();
    // Of the output. A connection that fell silent is one that was interrupted.
    if (cause instanceof EtlError && !(cause instanceof UnreachableError)) throw cause;
    throw refusalOf(view, cause) ?? interrupted(view, cause);
  } finally {
    signal.removeEventListener("abort", stop);
    // In the midst of a COPY this closes it at once.
    await client.end().catch(() => {});
  }
}

async function inTime(client: pg.Client, writing: Promise<void>): Promise<void> {
  const timer = setTimeout(() => void client.end().catch(() => {}), LONGEST_PAUSE_MS);
  await writing.finally(() => clearTimeout(timer));
}

function refusalOf({ isAsOf }: View, cause: unknown): UsageError | undefined {
  const { code, message, hint } = cause as pg.DatabaseError;
  if (!isAsOf || code !== INVALID_PARAMETER) return undefined;
  return new UsageError({
    code: "as_of_refused",
    message,
    next: hint ?? "Give another instant with --as-of.",
    cause,
  });
}

function interrupted({ name }: View, cause: unknown): EtlError {
  return new EtlError({
    code: "export_interrupted",
    message: `The export of ${name} was interrupted: ${cause instanceof Error ? cause.message : String(cause)}.`,
    next: "Run it again. A shorter range takes less time.",
    cause,
  });
}
