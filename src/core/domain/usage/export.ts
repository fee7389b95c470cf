import { HOUR_MS, STRIDE_MS } from "../time/stride.ts";
import type { UsageRecord } from "./record.ts";
import {
  KeyNumbering,
  type Misfit,
  type NumberedRow,
  type Requested,
  type ResponseKey,
} from "./response-keys.ts";

export interface ExportRow extends UsageRecord {
  /** Epoch ms of the bucket's end. Null only if the row has no start either. */
  readonly bucketEnd: number | null;
  readonly line: number;
}

export const BUCKET_COLUMNS = { start: "Time Bucket Start", end: "Time Bucket End" } as const;

/** An export whose rows are CSV but do not fit the request. It is refused whole. */
export class ExportError extends Error {
  readonly code: Misfit["code"] | "stride_differs" | "response_cut";
  constructor(code: ExportError["code"], message: string) {
    super(message);
    this.code = code;
  }
}

export interface ExportNotes {
  readonly first: number;
  readonly keys: readonly ResponseKey[];
  /** Buckets whose end (epoch ms) is not their start plus the stride. */
  readonly ends: readonly { readonly key: number; readonly bucketHour: number; readonly end: number }[];
}

/** Limit of keys and names in memory (about 60 MB). Beyond it a key may get a second number, and the store merges them. */
const MOST_KEYS = 200_000;
/** If more rows than this have a wrong end, the export has another stride. */
const MAX_WRONG_ENDS = 10_000;

const COLUMNS: Readonly<Partial<Record<Misfit["code"], string>>> = {
  bucket_misplaced: BUCKET_COLUMNS.start,
  bucket_missing: BUCKET_COLUMNS.start,
  workspace_unasked: "Workspace ID",
};

/**
 * Checks the rows of an export and numbers their keys, so that each row takes three numbers. Throws `ExportError` with line
 * and column.
 */
export class ExportKeys {
  rows = 0;
  traces = 0;
  /** True if each key's buckets came in rising order, so none came twice. */
  isAscending = true;
  last: { key: number; bucketHour: number; line: number } | undefined;
  readonly named = new Set<number>();

  readonly #requested: Requested;
  readonly #mostKeys: number;
  #numbering: KeyNumbering;
  #first = 1;
  #ends: { key: number; bucketHour: number; end: number }[] = [];
  #wrongEnds = 0;
  #firstWrongLine = 0;

  constructor(requested: Requested, mostKeys = MOST_KEYS) {
    this.#requested = requested;
    this.#mostKeys = mostKeys;
    this.#numbering = new KeyNumbering(requested);
  }

  /** Yields rows whose id is the number of their key. All rows are one reused object. */
  *keyed(rows: readonly ExportRow[]): Generator<NumberedRow, void, undefined> {
    const out: NumberedRow = { id: 0, bucketHour: 0, traces: 0 };
    let row: ExportRow | undefined;
    for (row of rows) {
      const key = this.#numbering.numberOf(row);
      if (typeof key !== "number") throw misfitProblem(key, row.line);
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

  get isFull(): boolean {
    return this.#numbering.isBeyond(this.#mostKeys);
  }

  /** Returns the keys and ends since the last call, and forgets them. */
  take(): ExportNotes {
    const { keys, isAscending } = this.#numbering;
    const notes = { first: this.#first, keys, ends: this.#ends };
    // A key that was taken before gets a new number, so its buckets may have come twice.
    if (!isAscending || (this.#first > 1 && keys.length > 0)) this.isAscending = false;
    for (const { workspace } of keys) this.named.add(workspace);
    this.#first += keys.length;
    this.#numbering = new KeyNumbering(this.#requested);
    this.#ends = [];
    return notes;
  }

  /** Call this after the last row. Throws `ExportError` if very many rows, or all, end as in another stride. */
  finish(): void {
    const { stride } = this.#requested.window;
    const where = `line ${this.#firstWrongLine}, column "${BUCKET_COLUMNS.end}"`;
    if (this.#wrongEnds > 0 && this.#wrongEnds === this.rows) {
      throw new ExportError("stride_differs", `${where}: no bucket ends one ${stride} after its start`);
    }
    if (this.#wrongEnds > MAX_WRONG_ENDS) {
      const message = `${where}: ${this.#wrongEnds} buckets do not end one ${stride} after their start`;
      throw new ExportError("stride_differs", message);
    }
    if (!Number.isSafeInteger(this.traces)) {
      throw new ExportError("bucket_missing", "the sum of all traces is beyond 2^53");
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

function misfitProblem({ code, message }: Misfit, line: number): ExportError {
  const column = COLUMNS[code];
  const where = column === undefined ? `line ${line}` : `line ${line}, column "${column}"`;
  return new ExportError(code, `${where}: ${message}`);
}
