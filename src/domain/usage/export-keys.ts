import { HOUR_MS, STRIDE_MS } from "../time/stride.ts";
import type { Window } from "../time/window.ts";
import { BUCKET_COLUMNS, ExportFlaw, type ExportRow } from "./export.ts";
import { type GroupBy, NO_ID } from "./record.ts";

/** A row by the number of its key, under the name that the store's COPY knows. */
interface KeyedRow {
  seriesId: number;
  /** Hours since 1970. */
  bucketHour: number;
  traces: number;
}

/** What has been gathered beside the rows. `ids[i]` and its like are of the key whose number is `first + i`. */
export interface ExportNotes {
  readonly first: number;
  readonly ids: readonly string[];
  /** Indices into the requested workspaces. */
  readonly workspaces: Int32Array;
  /** The name that came first, with the last bucket that carries it; undefined where there is none. */
  readonly names: readonly (string | undefined)[];
  readonly nameHours: Int32Array;
  /** Names of keys that have several. Hardly ever any. */
  readonly moreNames: readonly { readonly key: number; readonly name: string; readonly bucketHour: number }[];
  /** Buckets whose end, epoch milliseconds, is not their start plus the stride. */
  readonly ends: readonly { readonly key: number; readonly bucketHour: number; readonly end: number }[];
}

/** Bound of `entity_external_id_length`, in UTF-8 bytes. */
const MAX_ID_BYTES = 1000;
/** So many keys are told apart in memory (some 40 MB); with more, one may get a second number, and the store folds them. */
const MAX_KEYS = 250_000;
const BEFORE_ALL = -(2 ** 31);
/** More rows with a wrong end than this are no slips but another stride. */
const MAX_WRONG_ENDS = 10_000;

/**
 * Proves the rows of an export one by one (bucket inside the window and on its grid, workspace asked for) and gives each the
 * number of its key, so that a million rows pass through as three numbers each. Throws `ExportFlaw` with line and column.
 */
export class ExportKeys {
  rows = 0;
  traces = 0;
  /** Whether each key's buckets came in rising order so far: then none came twice. */
  isAscending = true;

  readonly #window: Window;
  readonly #groupBy: GroupBy;
  readonly #workspaceIds: readonly string[];
  readonly #workspaces: ReadonlyMap<string, number>;
  readonly #withNames: boolean;
  readonly #named = new Set<number>();
  readonly #out: KeyedRow = { seriesId: 0, bucketHour: 0, traces: 0 };
  readonly #maxKeys: number;
  #before = 0;
  #index: Map<string, number>[] = [];
  #ids: string[] = [];
  #workspaceOf = new Int32Array(0);
  #lastHour = new Int32Array(0);
  /** The key that last came after a key, one more than it: exports name them in the same order, bucket by bucket. */
  #next = new Int32Array(0);
  #last = 0;
  #nameOf: (string | undefined)[] = [];
  #nameHour = new Int32Array(0);
  #moreNames = new Map<string, { key: number; name: string; bucketHour: number }>();
  #ends: { key: number; bucketHour: number; end: number }[] = [];
  #wrongEnds = 0;
  #firstWrongLine = 0;

  constructor(given: {
    window: Window;
    groupBy: GroupBy;
    workspaceIds: readonly string[];
    /** Whether names are kept at all (`USAGE_USER_EMAIL`). */
    withNames: boolean;
    maxKeys?: number;
  }) {
    this.#window = given.window;
    this.#groupBy = given.groupBy;
    this.#workspaceIds = given.workspaceIds;
    this.#workspaces = new Map(given.workspaceIds.map((id, index) => [id, index]));
    this.#withNames = given.withNames;
    this.#maxKeys = given.maxKeys ?? MAX_KEYS;
    this.#clear();
  }

  /** The row handed out is one object, filled anew for each. */
  *keyed(rows: readonly ExportRow[]): Generator<KeyedRow, void, undefined> {
    const out = this.#out;
    for (const row of rows) {
      const bucketHour = this.#bucket(row) / HOUR_MS;
      const workspace = this.#workspace(row);
      const key = this.#key(workspace, row, bucketHour);
      if (row.dimensionName !== null && this.#withNames) this.#name(key, row.dimensionName, bucketHour);
      if (row.bucketEnd !== null) this.#end(key, row, bucketHour);
      this.rows++;
      this.traces += row.traces;
      out.seriesId = this.#before + key + 1;
      out.bucketHour = bucketHour;
      out.traces = row.traces;
      yield out;
    }
  }

  /** Whether `take` is due, so that memory stays where it is. */
  get isFull(): boolean {
    return this.#ids.length + this.#moreNames.size >= this.#maxKeys;
  }

  /** The keys, names and ends since the last call; forgets them. */
  take(): ExportNotes {
    const notes = {
      first: this.#before + 1,
      ids: this.#ids,
      workspaces: this.#workspaceOf,
      names: this.#nameOf,
      nameHours: this.#nameHour,
      moreNames: [...this.#moreNames.values()],
      ends: this.#ends,
    };
    this.#before += this.#ids.length;
    this.#clear();
    return notes;
  }

  /** To be called behind the last row. Throws `ExportFlaw` where every row, or very many, have another stride's end. */
  finish(): void {
    if (this.#wrongEnds > 0 && (this.#wrongEnds === this.rows || this.#wrongEnds > MAX_WRONG_ENDS)) {
      const { stride } = this.#window;
      const which =
        this.#wrongEnds === this.rows
          ? "no row"
          : `${this.#wrongEnds} rows, the first on line ${this.#firstWrongLine},`;
      throw new ExportFlaw(
        "stride_differs",
        which === "no row"
          ? `line ${this.#firstWrongLine}, column "${BUCKET_COLUMNS.end}": no row's bucket ends one ${stride} after it starts`
          : `${which} do not end one ${stride} after they start`,
      );
    }
    if (!Number.isSafeInteger(this.traces)) {
      throw new ExportFlaw("bucket_missing", "the sum of all traces is beyond 2^53");
    }
  }

  /** Indices of the requested workspaces that a row was for. */
  named(): Set<number> {
    return this.#named;
  }

  #clear(): void {
    this.#index = this.#workspaceIds.map(() => new Map());
    this.#ids = [];
    this.#workspaceOf = new Int32Array(1024);
    this.#lastHour = new Int32Array(1024);
    this.#next = new Int32Array(1024);
    this.#last = 0;
    this.#nameOf = [];
    this.#nameHour = new Int32Array(1024);
    this.#moreNames = new Map();
    this.#ends = [];
  }

  /** Epoch milliseconds. */
  #bucket({ bucketStart, line }: ExportRow): number {
    const { start, end, stride } = this.#window;
    const bucketMs = STRIDE_MS[stride];
    if (bucketStart === null) {
      if (end - start === bucketMs) return start;
      throw new ExportFlaw(
        "bucket_missing",
        `line ${line}, column "${BUCKET_COLUMNS.start}": it is empty in a window of several buckets`,
      );
    }
    if (bucketStart >= start && bucketStart < end && (bucketStart - start) % bucketMs === 0)
      return bucketStart;
    throw new ExportFlaw(
      "bucket_misplaced",
      `line ${line}, column "${BUCKET_COLUMNS.start}": ${new Date(bucketStart).toISOString()} is outside the window or off the ${stride} grid`,
    );
  }

  /** Index among the requested workspaces: the only one, or the one that the row names. */
  #workspace({ dimensionId, workspaceId, line }: ExportRow): number {
    const named = this.#groupBy === "workspace" && dimensionId !== NO_ID ? dimensionId : workspaceId;
    const index = named === null && this.#workspaces.size === 1 ? 0 : this.#workspaces.get(named ?? NO_ID);
    if (index === undefined) {
      throw new ExportFlaw(
        "workspace_unasked",
        `line ${line}, column "Workspace ID": ${named ?? "(none)"} was not asked for`,
      );
    }
    return index;
  }

  #key(workspace: number, row: ExportRow, hour: number): number {
    // A row by workspace that names none belongs to the only one asked for (see #workspace).
    const id = this.#groupBy === "workspace" ? (this.#workspaceIds[workspace] as string) : row.dimensionId;
    const expected = (this.#next[this.#last] as number) - 1;
    // Comparing with one string costs a fraction of a look-up, which has to hash it first.
    const isExpected = this.#ids[expected] === id && this.#workspaceOf[expected] === workspace;
    const index = this.#index[workspace] as Map<string, number>;
    const key = isExpected ? expected : (index.get(id) ?? this.#newKey(index, workspace, id, row.line));
    this.#next[this.#last] = key + 1;
    this.#last = key;
    if (hour <= (this.#lastHour[key] as number)) this.isAscending = false;
    this.#lastHour[key] = hour;
    return key;
  }

  #newKey(index: Map<string, number>, workspace: number, id: string, line: number): number {
    if (Buffer.byteLength(id) > MAX_ID_BYTES) {
      throw new ExportFlaw(
        "id_too_long",
        `line ${line}: an id of over ${MAX_ID_BYTES} bytes begins ${id.slice(0, 40)}`,
      );
    }
    // What was told apart before `take` is not known any more: this may be a key that came before.
    if (this.#before > 0) this.isAscending = false;
    const key = this.#ids.length;
    const own = ownCopy(id);
    index.set(own, key);
    this.#ids.push(own);
    this.#nameOf.push(undefined);
    if (key === this.#workspaceOf.length) this.#grow();
    this.#workspaceOf[key] = workspace;
    this.#lastHour[key] = BEFORE_ALL;
    this.#named.add(workspace);
    return key;
  }

  #grow(): void {
    // Moved, not copied into new ones: the old memory is free at once instead of at some later collection.
    const twice = (of: Int32Array<ArrayBuffer>) => new Int32Array(of.buffer.transfer(of.byteLength * 2));
    this.#workspaceOf = twice(this.#workspaceOf);
    this.#lastHour = twice(this.#lastHour);
    this.#next = twice(this.#next);
    this.#nameHour = twice(this.#nameHour);
  }

  #name(key: number, name: string, bucketHour: number): void {
    const first = this.#nameOf[key];
    if (first === undefined || first === name) {
      if (first === undefined) this.#nameOf[key] = ownCopy(name);
      if (first === undefined || bucketHour > (this.#nameHour[key] as number))
        this.#nameHour[key] = bucketHour;
      return;
    }
    const known = this.#moreNames.get(`${key} ${name}`);
    if (known === undefined) {
      this.#moreNames.set(`${key} ${name}`, { key: this.#before + key + 1, name: ownCopy(name), bucketHour });
    } else if (bucketHour > known.bucketHour) known.bucketHour = bucketHour;
  }

  #end(key: number, { bucketStart, bucketEnd, line }: ExportRow, bucketHour: number): void {
    if ((bucketEnd as number) - (bucketStart as number) === STRIDE_MS[this.#window.stride]) return;
    if (this.#wrongEnds === 0) this.#firstWrongLine = line;
    this.#wrongEnds++;
    if (this.#wrongEnds > MAX_WRONG_ENDS) return;
    this.#ends.push({ key: this.#before + key + 1, bucketHour, end: bucketEnd as number });
  }
}

/** Not a part of the text that it was cut from, all of which it would keep in memory. */
function ownCopy(text: string): string {
  return Buffer.from(text).toString();
}
