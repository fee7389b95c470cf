import { type GroupBy, NO_ID, type UsageRecord } from "./record.ts";
import { HOUR_MS, STRIDE_MS, type Stride } from "./stride.ts";
import type { Window } from "./window.ts";

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

/** When and how often a name was given to an entity; buckets in epoch milliseconds. */
interface NameSpan {
  first: number;
  last: number;
}

/** One value of the grouping's dimension within one of the requested workspaces. */
export interface AnswerKey {
  /** Index into the requested workspaces. */
  readonly workspace: number;
  readonly dimensionId: string;
  /** First and last bucket in which it was named, epoch milliseconds. */
  first: number;
  last: number;
  readonly names: Map<string, NameSpan>;
}

/** Bound of `entity_external_id_length`, in UTF-8 bytes. */
const MAX_ID_BYTES = 1000;

/**
 * Collects the records of one answer in columns: 16 bytes a record, so that a million wait for their proof in 16 MB.
 * Nothing of it may be stored before the client proved the answer whole and `flaw` is undefined.
 */
export class AnswerCollector {
  /** Distinct keys, in order of appearance. */
  readonly keys: AnswerKey[] = [];
  /** Sum of all traces received; what is stored must sum to the same. */
  traces = 0;
  records = 0;

  readonly #window: Window;
  readonly #groupBy: GroupBy;
  readonly #workspaceIds: readonly string[];
  readonly #workspaces: ReadonlyMap<string, number>;
  readonly #index: Map<string, number>[];
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
    const key = this.#key(workspace, record, bucket);
    const row = this.records - 1;
    if (row === this.#keyOf.length) this.#grow();
    this.#keyOf[row] = key;
    this.#bucketOf[row] = bucket / HOUR_MS;
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

  #key(workspace: number, record: UsageRecord, bucket: number): number {
    const index = this.#index[workspace] as Map<string, number>;
    // A record by workspace that names none belongs to the only one asked for (see #workspace).
    const id = this.#groupBy === "workspace" ? (this.#workspaceIds[workspace] as string) : record.dimensionId;
    let key = index.get(id);
    if (key === undefined) {
      if (Buffer.byteLength(id) > MAX_ID_BYTES) {
        this.#note("record", "id_too_long", `an id of over ${MAX_ID_BYTES} bytes begins ${id.slice(0, 40)}`);
      }
      key = this.keys.length;
      index.set(id, key);
      this.keys.push({ workspace, dimensionId: id, first: bucket, last: bucket, names: new Map() });
    }
    const entry = this.keys[key] as AnswerKey;
    if (bucket < entry.first) entry.first = bucket;
    if (bucket > entry.last) entry.last = bucket;
    if (record.dimensionName !== null) {
      const span = entry.names.get(record.dimensionName);
      if (span === undefined) entry.names.set(record.dimensionName, { first: bucket, last: bucket });
      else if (bucket < span.first) span.first = bucket;
      else if (bucket > span.last) span.last = bucket;
    }
    return key;
  }

  #grow(): void {
    const grown = this.#keyOf.length * 2;
    this.#keyOf = copyInto(new Int32Array(grown), this.#keyOf);
    this.#bucketOf = copyInto(new Int32Array(grown), this.#bucketOf);
    this.#tracesOf = copyInto(new Float64Array(grown), this.#tracesOf);
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
   * Hands out the rows in order of (rank of their key, bucket), each pair once: records that share a key and bucket are
   * added up. `rankOf[key]` is the key's place in the order the store wants; `bucket` is in hours since 1970.
   */
  forEachRow(
    rankOf: ArrayLike<number>,
    visit: (key: number, bucketHour: number, traces: number) => void,
  ): void {
    const { order, starts, keyAt } = this.#byKey(rankOf);
    for (let rank = 0; rank < keyAt.length; rank++) {
      const rows = order.subarray(starts[rank], starts[rank + 1]);
      if (!this.#ascending(rows))
        rows.sort((a, b) => (this.#bucketOf[a] as number) - (this.#bucketOf[b] as number));
      let sum = 0;
      for (let i = 0; i < rows.length; i++) {
        const row = rows[i] as number;
        sum += this.#tracesOf[row] as number;
        const bucket = this.#bucketOf[row] as number;
        const next = rows[i + 1];
        if (next !== undefined && this.#bucketOf[next] === bucket) continue;
        visit(keyAt[rank] as number, bucket, sum);
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

function copyInto<T extends Int32Array | Float64Array>(target: T, source: T): T {
  target.set(source as never);
  return target;
}
