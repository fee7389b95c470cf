import { HOUR_MS, STRIDE_MS } from "../time/stride.ts";
import {
  type AnswerKey,
  type AnswerKeys,
  KeyNumbering,
  type Misfit,
  type NumberedRow,
  type Requested,
} from "./answer-keys.ts";
import type { UsageRecord } from "./record.ts";

/** A row of the CSV export as a record. */
export interface ExportRow extends UsageRecord {
  /** Epoch milliseconds of the bucket's end; null where, and only where, the row has no start either. */
  readonly bucketEnd: number | null;
  /** Line of the body on which the row begins; the header is line 1. */
  readonly line: number;
}

/** Columns of the export that hold a bucket's start and end, for messages. */
export const BUCKET_COLUMNS = { start: "Time Bucket Start", end: "Time Bucket End" } as const;

/** Why an export is refused whole: its rows are CSV, but do not fit the request. */
export class ExportFlaw extends Error {
  readonly code: Misfit["code"] | "stride_differs" | "answer_cut";
  constructor(code: ExportFlaw["code"], message: string) {
    super(message);
    this.code = code;
  }
}

/** What `ExportKeys` gathers beside the rows. */
export interface ExportNotes {
  /** Number of the first key; the others follow. */
  readonly first: number;
  readonly keys: AnswerKeys;
  /** Buckets whose end, epoch milliseconds, is not their start plus the stride. */
  readonly ends: readonly { readonly key: number; readonly bucketHour: number; readonly end: number }[];
}

/** Keys and names kept in memory (some 60 MB); with more, one key may get a second number, and the store folds them. */
const MOST_KEYS = 250_000;
/** Names of one key are searched one after another. */
const MAX_NAMES_OF_KEY = 1_000;
/** More rows with a wrong end than this are another stride. */
const MAX_WRONG_ENDS = 10_000;

const COLUMNS: Readonly<Partial<Record<Misfit["code"], string>>> = {
  bucket_misplaced: BUCKET_COLUMNS.start,
  bucket_missing: BUCKET_COLUMNS.start,
  workspace_unasked: "Workspace ID",
};

/**
 * Checks the rows of an export one by one and numbers their keys, so that a million rows pass through as three numbers each.
 * Throws `ExportFlaw` with line and column.
 */
export class ExportKeys {
  rows = 0;
  traces = 0;
  /** Whether each key's buckets came in rising order so far: then none came twice. */
  isAscending = true;
  /** Key, bucket and line of the last row. */
  last: { key: number; bucketHour: number; line: number } | undefined;
  /** Indices of the requested workspaces that have a row, up to the last `take`. */
  readonly named = new Set<number>();

  readonly #requested: Requested;
  readonly #mostKeys: number;
  #numbering: KeyNumbering;
  /** Number of the first key since the last `take`. */
  #first = 1;
  #ends: { key: number; bucketHour: number; end: number }[] = [];
  #wrongEnds = 0;
  #firstWrongLine = 0;

  constructor(requested: Requested, mostKeys = MOST_KEYS) {
    this.#requested = requested;
    this.#mostKeys = mostKeys;
    this.#numbering = new KeyNumbering(requested);
  }

  /** Rows whose id is the number of their key. The generator refills and yields one object. */
  *keyed(rows: readonly ExportRow[]): Generator<NumberedRow, void, undefined> {
    const out: NumberedRow = { id: 0, bucketHour: 0, traces: 0 };
    let row: ExportRow | undefined;
    for (row of rows) {
      const key = this.#numbering.numberOf(row);
      if (typeof key !== "number") throw misfitFlaw(key, row.line);
      this.rows++;
      this.traces += row.traces;
      out.id = this.#first + key;
      out.bucketHour = (row.bucketStart ?? this.#requested.window.start) / HOUR_MS;
      out.traces = row.traces;
      if (row.bucketEnd !== null) this.#checkEnd(row, out);
      yield out;
    }
    if (row !== undefined) this.last = { key: out.id, bucketHour: out.bucketHour, line: row.line };
  }

  /** The key of a number that was given since the last `take`. */
  keyOf(number: number): AnswerKey {
    return this.#numbering.keys.at(number - this.#first);
  }

  /** Call `take` now, so that memory stays bounded. */
  get isFull(): boolean {
    const { length, moreNames, mostNames } = this.#numbering.keys;
    return length + moreNames >= this.#mostKeys || mostNames >= MAX_NAMES_OF_KEY;
  }

  /** The keys and ends since the last call; forgets them. */
  take(): ExportNotes {
    const { keys, isAscending } = this.#numbering;
    const notes = { first: this.#first, keys, ends: this.#ends };
    // A key that was taken before is numbered anew, so its buckets may have come twice.
    if (!isAscending || (this.#first > 1 && keys.length > 0)) this.isAscending = false;
    for (const workspace of keys.workspaces()) this.named.add(workspace);
    this.#first += keys.length;
    this.#numbering = new KeyNumbering(this.#requested);
    this.#ends = [];
    return notes;
  }

  /** Call it after the last row. Throws `ExportFlaw` if all rows, or very many, have another stride's end. */
  finish(): void {
    const { stride } = this.#requested.window;
    const where = `line ${this.#firstWrongLine}, column "${BUCKET_COLUMNS.end}"`;
    if (this.#wrongEnds > 0 && this.#wrongEnds === this.rows) {
      throw new ExportFlaw("stride_differs", `${where}: no bucket ends one ${stride} after its start`);
    }
    if (this.#wrongEnds > MAX_WRONG_ENDS) {
      const message = `${where}: ${this.#wrongEnds} buckets do not end one ${stride} after their start`;
      throw new ExportFlaw("stride_differs", message);
    }
    if (!Number.isSafeInteger(this.traces)) {
      throw new ExportFlaw("bucket_missing", "the sum of all traces is beyond 2^53");
    }
  }

  #checkEnd({ bucketStart, bucketEnd, line }: ExportRow, { id: key, bucketHour }: NumberedRow): void {
    const end = bucketEnd as number;
    if (end - (bucketStart as number) === STRIDE_MS[this.#requested.window.stride]) return;
    if (this.#wrongEnds === 0) this.#firstWrongLine = line;
    this.#wrongEnds++;
    if (this.#wrongEnds <= MAX_WRONG_ENDS) this.#ends.push({ key, bucketHour, end });
  }
}

function misfitFlaw({ code, message }: Misfit, line: number): ExportFlaw {
  const column = COLUMNS[code];
  const where = column === undefined ? `line ${line}` : `line ${line}, column "${column}"`;
  return new ExportFlaw(code, `${where}: ${message}`);
}
