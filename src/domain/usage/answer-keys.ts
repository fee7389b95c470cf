import { HOUR_MS, STRIDE_MS } from "../time/stride.ts";
import type { Window } from "../time/window.ts";
import { MEASURES, type Measure } from "./meter.ts";
import { type GroupBy, NO_ID, type UsageRecord } from "./record.ts";

/** First and last bucket that carry a name, in hours since 1970. */
interface NameSpan {
  readonly name: string;
  firstHour: number;
  lastHour: number;
}

/** One value of the dimension within one of the requested workspaces, for one measure. */
export interface AnswerKey {
  readonly measure: Measure;
  /** Index into the requested workspaces. */
  readonly workspace: number;
  readonly dimensionId: string;
  /** First and last bucket, in hours since 1970. */
  readonly firstHour: number;
  readonly lastHour: number;
  /** Rarely more than one. */
  readonly names: readonly Readonly<NameSpan>[];
}

/** Before every bucket, so that the first one of a key ascends. */
const BEFORE_ALL = -(2 ** 31);
const NONE = -1;

/** The numbers of a key. Hours are those of all its records, and of its first name. */
const WORKSPACE = 0;
const MEASURE = 1;
const FIRST = 2;
const LAST = 3;
const NAME_FIRST = 4;
const NAME_LAST = 5;
const NEXT = 6;
const WORDS = 7;

/** The keys of an answer, by number. They are kept in columns: as objects they take twice the memory. */
export class AnswerKeys implements Iterable<AnswerKey> {
  /** Of the key that has most. */
  mostNames = 0;
  /** Names beyond the first of each key. */
  moreNames = 0;
  readonly #ids: string[] = [];
  /** The first one of each key. */
  readonly #names: (string | null)[] = [];
  /** Those beyond it. */
  readonly #more = new Map<number, NameSpan[]>();
  #words = new Int32Array(WORDS * 64);

  get length(): number {
    return this.#ids.length;
  }

  /** A new object. */
  at(number: number): AnswerKey {
    const words = this.#words;
    const from = number * WORDS;
    const name = this.#names[number] as string | null;
    const named = {
      firstHour: words[from + NAME_FIRST] as number,
      lastHour: words[from + NAME_LAST] as number,
    };
    return {
      measure: MEASURES[words[from + MEASURE] as number] as Measure,
      workspace: words[from + WORKSPACE] as number,
      dimensionId: this.#ids[number] as string,
      firstHour: words[from + FIRST] as number,
      lastHour: words[from + LAST] as number,
      names: name === null ? [] : [{ name, ...named }, ...(this.#more.get(number) ?? [])],
    };
  }

  *[Symbol.iterator](): Generator<AnswerKey, void, undefined> {
    for (let number = 0; number < this.length; number++) yield this.at(number);
  }

  slice(start: number, end: number): AnswerKey[] {
    const keys: AnswerKey[] = [];
    for (let number = start; number < Math.min(end, this.length); number++) keys.push(this.at(number));
    return keys;
  }

  workspaceOf(number: number): number {
    return this.#words[number * WORDS + WORKSPACE] as number;
  }

  /** Indices of the requested workspaces that have a key. */
  workspaces(): Set<number> {
    const found = new Set<number>();
    for (let number = 0; number < this.length; number++) found.add(this.workspaceOf(number));
    return found;
  }

  /** The names of each key but its first. */
  *laterNames(): Generator<{ readonly number: number } & Readonly<NameSpan>, void, undefined> {
    const numbers = [...this.#more.keys()].sort((a, b) => a - b);
    for (const number of numbers) for (const span of this.#more.get(number) ?? []) yield { number, ...span };
  }

  is(number: number, workspace: number, measure: number, dimensionId: string): boolean {
    const from = number * WORDS;
    return (
      this.#ids[number] === dimensionId &&
      this.#words[from + WORKSPACE] === workspace &&
      this.#words[from + MEASURE] === measure
    );
  }

  /** Returns its number. `measure`: index into `MEASURES`. `dimensionId` is kept as it is. */
  enter(workspace: number, measure: number, dimensionId: string, hour: number): number {
    const number = this.#ids.push(dimensionId) - 1;
    this.#names.push(null);
    const from = number * WORDS;
    if (from === this.#words.length) {
      // `transfer` frees the old memory at once; a copy would leave it to a later collection.
      this.#words = new Int32Array(this.#words.buffer.transfer(2 * this.#words.byteLength));
    }
    const words = this.#words;
    words[from + WORKSPACE] = workspace;
    words[from + MEASURE] = measure;
    words[from + FIRST] = hour;
    words[from + LAST] = BEFORE_ALL;
    words[from + NEXT] = NONE;
    return number;
  }

  /** Notes a record of the key. Returns false if its bucket is not after all others. */
  widen(number: number, hour: number): boolean {
    const words = this.#words;
    const from = number * WORDS;
    if (hour > (words[from + LAST] as number)) {
      words[from + LAST] = hour;
      return true;
    }
    if (hour < (words[from + FIRST] as number)) words[from + FIRST] = hour;
    return false;
  }

  /** Notes a record of the key with a name. */
  widenName(number: number, name: string, hour: number): void {
    const first = this.#names[number] as string | null;
    if (first === name) {
      const words = this.#words;
      const from = number * WORDS;
      if (hour < (words[from + NAME_FIRST] as number)) words[from + NAME_FIRST] = hour;
      if (hour > (words[from + NAME_LAST] as number)) words[from + NAME_LAST] = hour;
    } else if (first === null) {
      this.#names[number] = ownCopy(name);
      this.#words[number * WORDS + NAME_FIRST] = hour;
      this.#words[number * WORDS + NAME_LAST] = hour;
      this.mostNames = Math.max(this.mostNames, 1);
    } else this.#widenLater(number, name, hour);
  }

  #widenLater(number: number, name: string, hour: number): void {
    const later = this.#more.get(number) ?? [];
    for (const span of later) {
      if (span.name !== name) continue;
      if (hour < span.firstHour) span.firstHour = hour;
      if (hour > span.lastHour) span.lastHour = hour;
      return;
    }
    later.push({ name: ownCopy(name), firstHour: hour, lastHour: hour });
    this.#more.set(number, later);
    this.moreNames++;
    this.mostNames = Math.max(this.mostNames, 1 + later.length);
  }

  /** The key that last followed this one: answers repeat the order of keys from bucket to bucket. Undefined: none did. */
  nextOf(number: number): number | undefined {
    const next = this.#words[number * WORDS + NEXT];
    return next === NONE ? undefined : next;
  }

  setNext(number: number, next: number): void {
    this.#words[number * WORDS + NEXT] = next;
  }
}

const SCRATCH = Buffer.allocUnsafeSlow(4096);

/** A substring keeps the whole text it was cut from in memory; a copy does not. */
function ownCopy(text: string): string {
  // Three bytes are the most that a character takes.
  if (3 * text.length > SCRATCH.length) return Buffer.from(text).toString();
  return SCRATCH.toString("utf8", 0, SCRATCH.write(text));
}

/** The request, as far as it decides which records fit. */
export interface Requested {
  readonly window: Window;
  readonly groupBy: GroupBy;
  readonly workspaceIds: readonly string[];
  /** False drops every name (`USAGE_USER_EMAIL`). */
  readonly withNames?: boolean;
  /** Keys beyond these do not fit. Default: any number. */
  readonly mostKeys?: number | undefined;
}

/** A record as three numbers. */
export interface NumberedRow {
  /** Of the record's key: its number, or its series id on the way into the store. */
  id: number;
  /** Hours since 1970. */
  bucketHour: number;
  traces: number;
}

/** Why a record does not fit its request. */
export interface Misfit {
  readonly code: "bucket_misplaced" | "bucket_missing" | "workspace_unasked" | "id_too_long" | "ids_too_many";
  readonly message: string;
}

/** Bound of `entity_external_id_length`, in UTF-8 bytes. */
const MAX_ID_BYTES = 1000;
/** What a record without a measure counts. */
const TRACES = MEASURES.indexOf("traces");

/**
 * Numbers the keys of an answer, JSON or CSV, in order of appearance, and checks that each record fits its request. Memory grows
 * with the keys, not with the records.
 */
export class KeyNumbering {
  readonly keys = new AnswerKeys();
  /** False once a key's buckets come out of order or twice. */
  isAscending = true;

  readonly #window: Window;
  readonly #isByWorkspace: boolean;
  readonly #withNames: boolean;
  readonly #mostKeys: number;
  readonly #workspaceIds: readonly string[];
  readonly #workspaces: ReadonlyMap<string, number>;
  readonly #index: Map<string, number>[];
  #last = 0;
  /** The last bucket that was checked; records of one bucket follow each other. */
  #checked: number | null | undefined;

  constructor(requested: Requested) {
    const {
      window,
      groupBy,
      workspaceIds,
      withNames = true,
      mostKeys = Number.POSITIVE_INFINITY,
    } = requested;
    this.#window = window;
    this.#isByWorkspace = groupBy === "workspace";
    this.#withNames = withNames;
    this.#mostKeys = mostKeys;
    this.#workspaceIds = workspaceIds;
    this.#workspaces = new Map(workspaceIds.map((id, index) => [id, index]));
    this.#index = workspaceIds.flatMap(() => MEASURES.map(() => new Map()));
  }

  /** The number of the record's key, or why the record does not fit. A fitting record without a bucket has the window's only one. */
  numberOf(record: UsageRecord): number | Misfit {
    const { bucketStart } = record;
    if (bucketStart !== this.#checked) {
      const misfit = bucketMisfit(bucketStart, this.#window);
      if (misfit !== undefined) return misfit;
      this.#checked = bucketStart;
    }
    const { dimensionId, dimensionName, measure: counted } = record;
    const named = this.#isByWorkspace && dimensionId !== NO_ID ? dimensionId : record.workspaceId;
    const isOnly = named === null && this.#workspaceIds.length === 1;
    const workspace = isOnly ? 0 : this.#workspaces.get(named ?? NO_ID);
    if (workspace === undefined) {
      return { code: "workspace_unasked", message: `workspace ${named ?? "(none)"} was not requested` };
    }
    // A record by workspace that names none belongs to the only one requested.
    const id = this.#isByWorkspace ? (this.#workspaceIds[workspace] as string) : dimensionId;
    const hour = (bucketStart ?? this.#window.start) / HOUR_MS;
    const measure = counted === undefined ? TRACES : MEASURES.indexOf(counted);
    const { keys } = this;
    // Comparing with one string costs a fraction of a look-up, which has to hash it first.
    const expected = keys.length === 0 ? undefined : keys.nextOf(this.#last);
    const isExpected = expected !== undefined && keys.is(expected, workspace, measure, id);
    const number = isExpected ? expected : this.#find(workspace, measure, id, hour);
    if (typeof number !== "number") return number;
    keys.setNext(this.#last, number);
    this.#last = number;
    if (!keys.widen(number, hour)) this.isAscending = false;
    if (dimensionName !== null && this.#withNames) keys.widenName(number, dimensionName, hour);
    return number;
  }

  #find(workspace: number, measure: number, id: string, hour: number): number | Misfit {
    const index = this.#index[workspace * MEASURES.length + measure] as Map<string, number>;
    const known = index.get(id);
    if (known !== undefined) return known;
    if (this.keys.length >= this.#mostKeys) {
      return { code: "ids_too_many", message: `the answer names more than ${this.#mostKeys} ids` };
    }
    if (Buffer.byteLength(id) > MAX_ID_BYTES) {
      const message = `an id is longer than ${MAX_ID_BYTES} bytes: ${id.slice(0, 40)}...`;
      return { code: "id_too_long", message };
    }
    const dimensionId = ownCopy(id);
    const number = this.keys.enter(workspace, measure, dimensionId, hour);
    index.set(dimensionId, number);
    return number;
  }
}

function bucketMisfit(bucketStart: number | null, { start, end, stride }: Window): Misfit | undefined {
  const bucketMs = STRIDE_MS[stride];
  if (bucketStart === null) {
    if (end - start === bucketMs) return undefined;
    return { code: "bucket_missing", message: "the bucket is empty, but the window has several" };
  }
  if (bucketStart >= start && bucketStart < end && (bucketStart - start) % bucketMs === 0) return undefined;
  const bucket = new Date(bucketStart).toISOString();
  return {
    code: "bucket_misplaced",
    message: `bucket ${bucket} is outside the window or off the ${stride} grid`,
  };
}
