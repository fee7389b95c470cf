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

export interface AnswerKey {
  readonly measure: Measure;
  readonly workspace: number;
  readonly dimensionId: string;
  readonly firstHour: number;
  readonly lastHour: number;
  /** A key rarely has more than one name. */
  readonly names: readonly Readonly<NameSpan>[];
}

/** Lies before every bucket, so that the first bucket of a key counts as ascending. */
const BEFORE_ALL = -(2 ** 31);
const NONE = -1;

const WORKSPACE = 0;
const MEASURE = 1;
const FIRST = 2;
const LAST = 3;
const NAME_FIRST = 4;
const NAME_LAST = 5;
const NEXT = 6;
const WORDS = 7;

/** The keys of a response, by number. They are columns because objects take twice the memory. */
export class AnswerKeys implements Iterable<AnswerKey> {
  /** Number of names of the key that has the most. */
  mostNames = 0;
  /** Names beyond the first of each key. */
  moreNames = 0;
  readonly #ids: string[] = [];
  /** First name of each key. */
  readonly #names: (string | null)[] = [];
  readonly #more = new Map<number, NameSpan[]>();
  #words = new Int32Array(WORDS * 64);

  get length(): number {
    return this.#ids.length;
  }

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

  /** Returns the number of the key. `measure` is an index into `MEASURES`. */
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

  /** Notes a record of the key. Returns false if its bucket does not come after all others. */
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

  /** Returns the key that last followed this one, because responses repeat the order of keys from bucket to bucket. */
  nextOf(number: number): number | undefined {
    const next = this.#words[number * WORDS + NEXT];
    return next === NONE ? undefined : next;
  }

  setNext(number: number, next: number): void {
    this.#words[number * WORDS + NEXT] = next;
  }
}

const SCRATCH = Buffer.allocUnsafeSlow(4096);

/** Copies a substring, because a substring keeps the whole text it was cut from in memory. */
function ownCopy(text: string): string {
  // Three bytes are the most that a character takes.
  if (3 * text.length > SCRATCH.length) return Buffer.from(text).toString();
  return SCRATCH.toString("utf8", 0, SCRATCH.write(text));
}

export interface Requested {
  readonly window: Window;
  readonly groupBy: GroupBy;
  readonly workspaceIds: readonly string[];
  /** False drops every name (`USAGE_USER_EMAIL`). */
  readonly withNames?: boolean;
  /** Refuses more keys than this. Default: no limit. */
  readonly mostKeys?: number | undefined;
}

export interface NumberedRow {
  /** Number of the record's key, or its series id in the store. */
  id: number;
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
/** The measure of a record that names none. */
const TRACES = MEASURES.indexOf("traces");

/**
 * Numbers the keys of a response, JSON or CSV, in order of appearance, and checks that each record fits its request.
 * Memory grows with the keys, not with the records.
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
  /** The bucket that was checked last. Records of one bucket follow each other. */
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
