import { sql } from "kysely";
import pg from "pg";
import { EtlError } from "../../errors.ts";
import type { Store } from "../db/database.ts";
import { ClosingClient, SILENCE_LIMITS } from "../db/silence.ts";
import { keyOf, timeColumnOf, type View } from "./views.ts";

/** A row as Postgres writes it: texts in the order of the columns, instants in UTC. */
export type TextRow = readonly (string | null)[];

/** Half-open, epoch milliseconds. Without `from` or `to` that end is open. */
interface OpenRange {
  readonly from?: number;
  readonly to?: number;
}

interface RowsWanted {
  /** Cancels the statement of the cursor's connection when the signal aborts. */
  readonly store: Store;
  readonly url: string;
  readonly view: View;
  /** Names of columns, in the order wanted. */
  readonly columns: readonly string[];
  readonly range: OpenRange;
  readonly signal: AbortSignal;
}

/** Rows per FETCH. More are not faster. One or four million rows take the same 400 to 550 MB (CSV, Parquet). */
const BATCH = 1000;
/** How long a reader of the output may pause. Then Postgres drops the snapshot, because it holds back vacuum. */
const LONGEST_PAUSE = "10min";

const asText: pg.CustomTypesConfig = { getTypeParser: () => (text: string) => text };

/**
 * The rows of a view in the order of its time and key, in batches, as of one instant. The cursor has a connection of its
 * own, because connections of the store end an idle transaction. Errors: `export_interrupted` if Postgres ends it.
 */
export async function* readView(wanted: RowsWanted): AsyncGenerator<TextRow[]> {
  const { store, url, view, columns, range, signal } = wanted;
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
    await client.query(
      `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO';
       SET LOCAL jit = off; SET LOCAL cursor_tuple_fraction = 1; SET LOCAL statement_timeout = 0;
       SET LOCAL idle_in_transaction_session_timeout = '${LONGEST_PAUSE}'`,
    );
    const { rows: own } = await client.query<[string]>({ text: "SELECT pg_backend_pid()", rowMode: "array" });
    pid = Number(own[0]?.[0]);
    await client.query(`DECLARE rows NO SCROLL CURSOR FOR ${queryOf(view, columns, range)}`);
    while (true) {
      signal.throwIfAborted();
      const { rows } = await client.query<string[]>({ text: `FETCH ${BATCH} FROM rows`, rowMode: "array" });
      if (rows.length === 0) return;
      yield rows;
    }
  } catch (cause) {
    signal.throwIfAborted();
    throw new EtlError({
      code: "export_interrupted",
      message: `Postgres ended the export of ${view.name}: ${cause instanceof Error ? cause.message : String(cause)}.`,
      next: "Run it again. A shorter range takes less time.",
      cause,
    });
  } finally {
    signal.removeEventListener("abort", stop);
    await client.end().catch(() => {});
  }
}

/** An end of the range inside a bucket is widened outwards to the bucket's end. */
function queryOf(view: View, columns: readonly string[], { from, to }: OpenRange): string {
  const time = timeColumnOf(view);
  const conditions: string[] = [];
  if (time !== undefined) {
    const column = pg.escapeIdentifier(time.name);
    const instant = (epochMs: number) => `'${new Date(epochMs).toISOString()}'::timestamptz`;
    const start = (epochMs: number, unit: string) =>
      time.type === "date"
        ? `date_trunc('${unit}', ${instant(epochMs)}, 'UTC')::date`
        : `date_trunc('hour', ${instant(epochMs)}, 'UTC')`;
    const unit = time.name === "month_start" ? "month" : "day";
    if (from !== undefined) conditions.push(`${column} >= ${start(from, unit)}`);
    // The last instant before the end lies in the last wanted day.
    if (to !== undefined)
      conditions.push(
        time.type === "date" ? `${column} <= ${start(to - 1, "day")}` : `${column} < ${instant(to)}`,
      );
  }
  const quoted = (names: Iterable<string>) => [...names].map((name) => pg.escapeIdentifier(name)).join(", ");
  const order = new Set([...(time === undefined ? [] : [time.name]), ...keyOf(view)]);
  return [
    `SELECT ${quoted(columns)} FROM reporting.${quoted([view.name])}`,
    ...(conditions.length === 0 ? [] : [`WHERE ${conditions.join(" AND ")}`]),
    ...(order.size === 0 ? [] : [`ORDER BY ${quoted(order)}`]),
  ].join(" ");
}
