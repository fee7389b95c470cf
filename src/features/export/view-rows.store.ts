import pg from "pg";
import { to as copyTo } from "pg-copy-streams";
import { type EtlError, UsageError } from "../../core/base/errors.ts";
import { bindings, queryOf, type Selection, type View, type ViewColumn } from "../../core/store/db/views.ts";
import { interruption, onReadingConnection, type ReadingAccess } from "./reading-connection.store.ts";

/** Postgres's texts in the order of the columns, instants in UTC. */
export type TextRow = readonly (string | null)[];

export type RowsWanted = Selection & ReadingAccess;

/** Rows per FETCH. More rows are not faster. */
const BATCH = 1000;
/** Longest pause of the reader before the connection is closed, because its snapshot holds back vacuum. */
const LONGEST_PAUSE_MS = 600_000;
/** Functions as of an instant refuse an instant with this SQLSTATE. */
const INVALID_PARAMETER = "22023";

/**
 * Passes on Postgres's output in pieces that begin and end anywhere. A query that fails at once writes nothing, because the
 * header comes with the first rows. Returns the number of rows.
 */
export function copyRows(
  wanted: RowsWanted,
  { query, options }: CopyForm,
  write: (piece: Uint8Array) => Promise<void>,
): Promise<number> {
  return onConnection(wanted, async (client) => {
    const stream = client.query(copyTo(`COPY (${query}) TO STDOUT (${options})`));
    // This listener prevents a crash if the connection closes while no code waits for rows.
    stream.on("error", () => {});
    for await (const piece of stream) await inTime(client, write(piece));
    // The stream ends before Postgres reports the number of rows.
    await client.query("COMMIT");
    return stream.rowCount;
  });
}

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

/** One statement reads all rows, so they are of one instant. Errors: `as_of_refused`; `export_interrupted`. */
function onConnection(wanted: RowsWanted, read: (client: pg.Client) => Promise<number>): Promise<number> {
  const { view } = wanted;
  const errorOf = (cause: unknown) => refusalOf(view, cause) ?? interrupted(view, cause);
  // With REPEATABLE READ, the functions as of an instant accept fewer instants.
  return onReadingConnection({ ...wanted, isolation: "READ COMMITTED", errorOf }, async (client) => {
    await client.query(bindings(wanted));
    return read(client);
  });
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
  return interruption({
    code: "export_interrupted",
    message: `The export of ${name} was interrupted: ${cause instanceof Error ? cause.message : String(cause)}.`,
    next: "Run the export again, or choose a shorter range.",
    cause,
  });
}

interface CopyForm {
  readonly query: string;
  readonly options: string;
}

/**
 * RFC 4180 with `\n`. Null is an empty cell, an empty text is `""`. With `guard`, a text that a spreadsheet would run as a
 * formula begins with a `'` (CSV injection); a negative number does not.
 */
export function csvForm(selection: Selection, { guard }: { guard: boolean }): CopyForm {
  const query = cellsOf(selection, (cell, { type }) => {
    if (type === "boolean") return `${cell}::text`;
    if (type === "timestamp with time zone") return isoInstant(cell);
    if (!guard || NO_FORMULA.includes(type)) return cell;
    return `CASE WHEN ascii(${cell}::text) IN (${FORMULA_STARTS}) THEN '''' || ${cell} ELSE ${cell}::text END`;
  });
  return { query, options: "FORMAT csv, HEADER" };
}

/**
 * JSON Lines, so that a reader keeps only one object in memory. Integers keep all digits. Decimals are texts, because most
 * readers would parse them as floats.
 */
export function jsonForm(selection: Selection): CopyForm {
  const cells = cellsOf(selection, (cell, { type }) => {
    if (AS_IN_JSON.includes(type)) return cell;
    return type === "timestamp with time zone" ? isoInstant(cell) : `${cell}::text`;
  });
  return {
    query: `SELECT row_to_json(object) FROM (${cells}) object`,
    // JSON escapes control characters, so these two never occur and no value is quoted.
    options: String.raw`FORMAT csv, DELIMITER E'\x02', QUOTE E'\x01'`,
  };
}

const NO_FORMULA = ["bigint", "integer", "numeric", "date"];
const AS_IN_JSON = ["bigint", "integer", "boolean"];
/** OWASP's list: = + - @, tab, carriage return, and the wide forms of the first four. */
export const FORMULA_SIGNS: readonly string[] = [..."=+-@\t\r＝＋－＠"];
const FORMULA_STARTS = FORMULA_SIGNS.map((character) => character.codePointAt(0)).join(", ");

/** The inner order keeps Postgres from computing a column again for each mention. */
function cellsOf(selection: Selection, cellOf: (cell: string, column: ViewColumn) => string): string {
  const cells = selection.columns.map((column) => {
    const name = pg.escapeIdentifier(column.name);
    return `${cellOf(name, column)} AS ${name}`;
  });
  return `SELECT ${cells.join(", ")} FROM (${queryOf(selection)}) selected`;
}

/** The session is in UTC, so `2026-03-01 05:00:00.12+00` becomes `2026-03-01T05:00:00.12Z`. */
function isoInstant(cell: string): string {
  return `replace(replace(${cell}::text, ' ', 'T'), '+00', 'Z')`;
}
