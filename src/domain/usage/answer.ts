import { HOUR_MS, STRIDE_MS, type Stride } from "../time/stride.ts";
import type { Window } from "../time/window.ts";
import { type GroupBy, NO_ID, type UsageRecord } from "./record.ts";

/** Why an answer cannot be used as it is. `grid`: ask one stride finer. `record`: ask for less, down to one bucket. */
export interface AnswerFlaw {
  readonly kind: "grid" | "record";
  readonly code:
    | "stride_differs"
    | "bucket_misplaced"
    | "bucket_missing"
    | "workspace_unasked"
    | "id_too_long";
  readonly message: string;
}

/** First and last bucket in which a name was given, in hours since 1970. */
interface NameSpan {
  readonly name: string;
  firstHour: number;
  lastHour: number;
}

/** One value of the grouping's dimension within one of the requested workspaces. */
export interface AnswerKey {
  /** Index into the requested workspaces. */
  readonly workspace: number;
  readonly dimensionId: string;
  /** First and last bucket in which it was named, in hours since 1970. */
  firstHour: number;
  lastHour: number;
  /** Hardly ever more than one. */
  readonly names: NameSpan[];
}

/** A row of an answer, for the store: the id that it was given for the row's key, hours since 1970, traces. */
export interface AnswerRow {
  seriesId: number;
  bucketHour: number;
  traces: number;
}

/** Bound of `entity_external_id_length`, in UTF-8 bytes. */
const MAX_ID_BYTES = 1000;

/**
 * Collects the records of one answer in columns: 16 bytes a record, so that a million wait for their proof in 16 MB.
 * Nothing of it may be stored before the client proved the answer whole and `flaw` is undefined.
 */
export class AnswerCollector {
  /** Distinct keys, in order of appearance. */
  get keys(): readonly AnswerKey[] {
    return this.#keys;
  }
  /** Sum of all traces received; what is stored must sum to the same. */
  traces = 0;
  records = 0;

  readonly #window: Window;
  readonly #groupBy: GroupBy;
  readonly #workspaceIds: readonly string[];
  readonly #workspaces: ReadonlyMap<string, number>;
  readonly #keys: AnswerKey[] = [];
  readonly #index: Map<string, number>[];
  /** The key that last came after a key: answers name them in the same order, bucket by bucket. */
  readonly #next: number[] = [];
  #last = 0;
  #keyOf = new Int32Array(1024);
  #bucketOf = new Int32Array(1024);
  #tracesOf = new Float64Array(1024);
  #flaw: AnswerFlaw | undefined;

  constructor(slice: { window: Window; groupBy: GroupBy; workspaceIds: readonly string[] }) {
    this.#window = slice.window;
    this.#groupBy = slice.groupBy;
    this.#workspaceIds = slice.workspaceIds;
    this.#workspaces = new Map(slice.workspaceIds.map((id, index) => [id, index]));
    this.#index = slice.workspaceIds.map(() => new Map());
  }

  add(records: readonly UsageRecord[]): void {
    for (const record of records) this.#add(record);
  }

  #add(record: UsageRecord): void {
    this.records++;
    const bucket = this.#bucket(record);
    const workspace = this.#workspace(record);
    if (bucket === undefined || workspace === undefined) return;
    const hour = bucket / HOUR_MS;
    const key = this.#key(workspace, record, hour);
    const row = this.records - 1;
    if (row === this.#keyOf.length) this.#grow();
    this.#keyOf[row] = key;
    this.#bucketOf[row] = hour;
    this.#tracesOf[row] = record.traces;
    this.traces += record.traces;
  }

  /** Epoch milliseconds of the record's bucket, proved to lie in the window and on its stride's epoch grid. */
  #bucket(record: UsageRecord): number | undefined {
    const { start, end, stride } = this.#window;
    const bucketMs = STRIDE_MS[stride];
    if (record.bucketStart === null) {
      if (end - start === bucketMs) return start;
      this.#note("record", "bucket_missing", "a record names no time bucket in a window of several");
      return undefined;
    }
    if (
      record.bucketStart < start ||
      record.bucketStart >= end ||
      (record.bucketStart - start) % bucketMs !== 0
    ) {
      const bucket = new Date(record.bucketStart).toISOString();
      this.#note(
        "grid",
        "bucket_misplaced",
        `bucket ${bucket} is outside its window or off the ${stride} grid`,
      );
      return undefined;
    }
    return record.bucketStart;
  }

  /** Index of the record's workspace among the requested ones: the only one, or the one it names. */
  #workspace(record: UsageRecord): number | undefined {
    const named =
      this.#groupBy === "workspace" && record.dimensionId !== NO_ID ? record.dimensionId : record.workspaceId;
    const index = named === null && this.#workspaces.size === 1 ? 0 : this.#workspaces.get(named ?? NO_ID);
    if (index === undefined) {
      this.#note(
        "record",
        "workspace_unasked",
        `a record names workspace ${named ?? "(none)"}, which was not asked for`,
      );
    }
    return index;
  }

  #key(workspace: number, record: UsageRecord, hour: number): number {
    // A record by workspace that names none belongs to the only one asked for (see #workspace).
    const id = this.#groupBy === "workspace" ? (this.#workspaceIds[workspace] as string) : record.dimensionId;
    const key = this.#keyNumber(workspace, id, hour);
    const entry = this.#keys[key] as AnswerKey;
    widen(entry, hour);
    if (record.dimensionName !== null) widen(spanOf(entry.names, record.dimensionName, hour), hour);
    return key;
  }

  #keyNumber(workspace: number, id: string, hour: number): number {
    // Comparing with one string costs a fraction of a look-up, which has to hash it first.
    const expected = this.#next[this.#last];
    if (expected !== undefined) {
      const entry = this.#keys[expected] as AnswerKey;
      if (entry.dimensionId === id && entry.workspace === workspace) {
        this.#last = expected;
        return expected;
      }
    }
    const index = this.#index[workspace] as Map<string, number>;
    const key = index.get(id) ?? this.#newKey(index, workspace, id, hour);
    this.#next[this.#last] = key;
    this.#last = key;
    return key;
  }

  #newKey(index: Map<string, number>, workspace: number, id: string, hour: number): number {
    if (Buffer.byteLength(id) > MAX_ID_BYTES) {
      this.#note("record", "id_too_long", `an id of over ${MAX_ID_BYTES} bytes begins ${id.slice(0, 40)}`);
    }
    const key = this.#keys.length;
    index.set(id, key);
    this.#keys.push({ workspace, dimensionId: id, firstHour: hour, lastHour: hour, names: [] });
    return key;
  }

  #grow(): void {
    const rows = this.#keyOf.length * 2;
    // Moved, not copied into new ones: the old memory is free at once instead of at some later collection.
    this.#keyOf = new Int32Array(this.#keyOf.buffer.transfer(rows * 4));
    this.#bucketOf = new Int32Array(this.#bucketOf.buffer.transfer(rows * 4));
    this.#tracesOf = new Float64Array(this.#tracesOf.buffer.transfer(rows * 8));
  }

  #note(kind: AnswerFlaw["kind"], code: AnswerFlaw["code"], message: string): void {
    // A wrong grid explains misplaced buckets, so it wins over a flaw of one record.
    if (this.#flaw === undefined || (this.#flaw.kind === "record" && kind === "grid"))
      this.#flaw = { kind, code, message };
  }

  /** The reason not to use this answer, given the stride it announced (undefined: none of the five). */
  flaw(stride: Stride | undefined): AnswerFlaw | undefined {
    if (stride !== this.#window.stride) {
      const message = `planned ${this.#window.stride} buckets, the answer's stride is ${stride ?? "none of the known ones"}`;
      return { kind: "grid", code: "stride_differs", message };
    }
    if (this.#flaw === undefined && !Number.isSafeInteger(this.traces)) {
      return { kind: "record", code: "bucket_missing", message: "the sum of all traces is beyond 2^53" };
    }
    return this.#flaw;
  }

  /** Whether any record was received for a requested workspace, by its index. */
  named(): Set<number> {
    return new Set(this.keys.map((key) => key.workspace));
  }

  /**
   * The rows in order of (series id of their key, bucket), each pair once: records that share a key and bucket are added
   * up. `seriesOf[key]` is the store's id of a key. The row handed out is one object, filled anew for each.
   */
  *rows(seriesOf: ArrayLike<number>): Generator<AnswerRow, void, undefined> {
    const { order, starts, keyAt } = this.#byKey(ranks(seriesOf, this.keys.length));
    const out: AnswerRow = { seriesId: 0, bucketHour: 0, traces: 0 };
    for (let rank = 0; rank < keyAt.length; rank++) {
      const rows = order.subarray(starts[rank], starts[rank + 1]);
      if (!this.#ascending(rows))
        rows.sort((a, b) => (this.#bucketOf[a] as number) - (this.#bucketOf[b] as number));
      out.seriesId = seriesOf[keyAt[rank] as number] as number;
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

  /** Counting sort of row numbers by the rank of their key. */
  #byKey(rankOf: ArrayLike<number>): { order: Int32Array; starts: Int32Array; keyAt: Int32Array } {
    const keyAt = new Int32Array(this.keys.length);
    for (let key = 0; key < this.keys.length; key++) keyAt[rankOf[key] as number] = key;
    const starts = new Int32Array(this.keys.length + 1);
    for (let row = 0; row < this.records; row++) {
      const rank = (rankOf[this.#keyOf[row] as number] as number) + 1;
      starts[rank] = (starts[rank] as number) + 1;
    }
    for (let rank = 1; rank < starts.length; rank++)
      starts[rank] = (starts[rank] as number) + (starts[rank - 1] as number);
    const next = starts.slice();
    const order = new Int32Array(this.records);
    for (let row = 0; row < this.records; row++) {
      const rank = rankOf[this.#keyOf[row] as number] as number;
      const place = next[rank] as number;
      next[rank] = place + 1;
      order[place] = row;
    }
    return { order, starts, keyAt };
  }

  #ascending(rows: Int32Array): boolean {
    for (let i = 1; i < rows.length; i++) {
      if ((this.#bucketOf[rows[i - 1] as number] as number) > (this.#bucketOf[rows[i] as number] as number))
        return false;
    }
    return true;
  }
}

function widen(span: { firstHour: number; lastHour: number }, hour: number): void {
  if (hour < span.firstHour) span.firstHour = hour;
  if (hour > span.lastHour) span.lastHour = hour;
}

/** The string that came first is kept: a new one a record would fill the memory with equal ones. */
function spanOf(names: NameSpan[], name: string, hour: number): NameSpan {
  for (const span of names) if (span.name === name) return span;
  const span = { name, firstHour: hour, lastHour: hour };
  names.push(span);
  return span;
}

/** Place of each key in the order of its series id. */
function ranks(seriesOf: ArrayLike<number>, keys: number): Int32Array {
  const order = Int32Array.from({ length: keys }, (_, key) => key);
  order.sort((a, b) => (seriesOf[a] as number) - (seriesOf[b] as number));
  const rankOf = new Int32Array(keys);
  order.forEach((key, rank) => {
    rankOf[key] = rank;
  });
  return rankOf;
}
