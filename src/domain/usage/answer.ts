import { HOUR_MS, type Stride } from "../time/stride.ts";
import {
  type AnswerKeys,
  KeyNumbering,
  type Misfit,
  type NumberedRow,
  type Requested,
} from "./answer-keys.ts";
import type { UsageRecord } from "./record.ts";

/** Why a response cannot be used. `grid`: request one stride finer. `record`: request less, down to one bucket. */
export interface AnswerFlaw {
  readonly kind: "grid" | "record";
  readonly code: Misfit["code"] | "stride_differs";
  readonly message: string;
}

/** A row with the index of the requested workspace it belongs to. */
export interface AnswerRow extends NumberedRow {
  workspace: number;
}

/**
 * Collects the records of one response in columns: 16 bytes a record. Store nothing of it before the client has
 * proved the response whole and `flaw` is undefined.
 */
export class AnswerCollector {
  /** Sum of all traces received. What is stored must have the same sum. For deployments: the sum of all measures. */
  traces = 0;
  records = 0;

  readonly #requested: Requested;
  readonly #numbering: KeyNumbering;
  #rows = 0;
  #keyOf = new Int32Array(1024);
  #bucketOf = new Int32Array(1024);
  #tracesOf = new Float64Array(1024);
  #flaw: AnswerFlaw | undefined;

  constructor(requested: Requested) {
    this.#requested = requested;
    this.#numbering = new KeyNumbering(requested);
  }

  get keys(): AnswerKeys {
    return this.#numbering.keys;
  }

  add(records: readonly UsageRecord[]): void {
    for (const record of records) this.#add(record);
  }

  #add(record: UsageRecord): void {
    this.records++;
    const key = this.#numbering.numberOf(record);
    if (typeof key !== "number") {
      this.#note(key);
      return;
    }
    const row = this.#rows++;
    if (row === this.#keyOf.length) this.#grow();
    this.#keyOf[row] = key;
    this.#bucketOf[row] = (record.bucketStart ?? this.#requested.window.start) / HOUR_MS;
    this.#tracesOf[row] = record.traces;
    this.traces += record.traces;
  }

  #grow(): void {
    const rows = this.#keyOf.length * 2;
    // `transfer` frees the old memory at once; a copy would leave it to a later collection.
    this.#keyOf = new Int32Array(this.#keyOf.buffer.transfer(rows * 4));
    this.#bucketOf = new Int32Array(this.#bucketOf.buffer.transfer(rows * 4));
    this.#tracesOf = new Float64Array(this.#tracesOf.buffer.transfer(rows * 8));
  }

  #note(misfit: Misfit): void {
    const kind = misfit.code === "bucket_misplaced" ? "grid" : "record";
    // A wrong grid explains misplaced buckets, so it replaces the flaw of one record.
    if (this.#flaw === undefined || (this.#flaw.kind === "record" && kind === "grid"))
      this.#flaw = { kind, ...misfit };
  }

  /** The reason not to use this response. `stride` is the one that the response announced; undefined if it is none of the five. */
  flaw(stride: Stride | undefined): AnswerFlaw | undefined {
    const planned = this.#requested.window.stride;
    if (stride !== planned) {
      const message = `planned ${planned} buckets, the answer's stride is ${stride ?? "none of the known ones"}`;
      return { kind: "grid", code: "stride_differs", message };
    }
    if (this.#flaw === undefined && !Number.isSafeInteger(this.traces)) {
      return { kind: "record", code: "bucket_missing", message: "the sum of all traces is beyond 2^53" };
    }
    return this.#flaw;
  }

  named(): Set<number> {
    return this.keys.workspaces();
  }

  /**
   * Yields the rows in order of (id of the key, bucket), and adds up records that share a key and bucket.
   * `ids[number]` is the id that a key's rows get, by default the number itself. The generator reuses one object.
   */
  *rows(ids?: ArrayLike<number>): Generator<AnswerRow, void, undefined> {
    const byId = Int32Array.from({ length: this.keys.length }, (_, key) => key);
    if (ids !== undefined) byId.sort((a, b) => (ids[a] as number) - (ids[b] as number));
    const { order, starts } = this.#byKey(byId);
    const out: AnswerRow = { id: 0, workspace: 0, bucketHour: 0, traces: 0 };
    for (let rank = 0; rank < byId.length; rank++) {
      const rows = order.subarray(starts[rank], starts[rank + 1]);
      if (!this.#numbering.isAscending)
        rows.sort((a, b) => (this.#bucketOf[a] as number) - (this.#bucketOf[b] as number));
      const key = byId[rank] as number;
      out.id = ids === undefined ? key : (ids[key] as number);
      out.workspace = this.keys.workspaceOf(key);
      let sum = 0;
      for (let i = 0; i < rows.length; i++) {
        const row = rows[i] as number;
        sum += this.#tracesOf[row] as number;
        const bucket = this.#bucketOf[row] as number;
        const next = rows[i + 1];
        if (next !== undefined && this.#bucketOf[next] === bucket) continue;
        out.bucketHour = bucket;
        out.traces = sum;
        yield out;
        sum = 0;
      }
    }
  }

  /** Counting sort of row numbers by the place of their key in `keys`. */
  #byKey(keys: Int32Array): { order: Int32Array; starts: Int32Array } {
    const rankOf = new Int32Array(keys.length);
    for (let rank = 0; rank < keys.length; rank++) rankOf[keys[rank] as number] = rank;
    const starts = new Int32Array(keys.length + 1);
    for (let row = 0; row < this.#rows; row++) {
      const rank = (rankOf[this.#keyOf[row] as number] as number) + 1;
      starts[rank] = (starts[rank] as number) + 1;
    }
    for (let rank = 1; rank < starts.length; rank++)
      starts[rank] = (starts[rank] as number) + (starts[rank - 1] as number);
    const next = starts.slice();
    const order = new Int32Array(this.#rows);
    for (let row = 0; row < this.#rows; row++) {
      const rank = rankOf[this.#keyOf[row] as number] as number;
      const place = next[rank] as number;
      next[rank] = place + 1;
      order[place] = row;
    }
    return { order, starts };
  }
}
