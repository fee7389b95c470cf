import { isDeepStrictEqual } from "node:util";
import type { UsageRecord } from "../../domain/usage/record.ts";
import { parseRun, skipSpace, ValueScanner } from "./json-scan.ts";
import { ResponseError } from "./response-error.ts";
import type { FromWireRecord } from "./wire-record.ts";
import { fromWireTime } from "./wire-values.ts";

/** A part of a record that differs from record to record. `number`: of a member that is not read. */
type Slot = "time_bucket" | "dimensions" | "traces" | "number";

/** How the records of a response are written: the slots in order, and the fixed texts around them. */
interface Layout {
  readonly slots: readonly Slot[];
  readonly opening: Text;
  /** After each slot. Empty for the last one. */
  readonly after: readonly Text[];
  readonly closing: Text;
}

/** Bytes that are compared four at a time: words from `first` on, then the last bytes one by one. */
interface Text {
  readonly words: Int32Array;
  readonly first: number;
  readonly bytes: number;
}

/** A value with the fixed text that follows it. `next`: the value that followed it last, because responses repeat their order. */
interface Known<T> {
  readonly text: Text;
  readonly value: T;
  /** False beyond the limit. A value that nobody keeps must not be the next of another. */
  readonly isKept: boolean;
  next: Known<T> | undefined;
}

type Dimensions = Pick<UsageRecord, "workspaceId" | "dimensionId" | "dimensionName">;

/** Limits the memory: some 50,000 dimensions take 15 MB. More are parsed each time. */
const MAX_REMEMBERED_BYTES = 4_194_304;
const MAX_PATTERN_BYTES = 4096;
const SLAB_WORDS = 16_384;
const MAX_BUCKET_BYTES = 64;
/** A number of 15 digits is below 2^53. */
const MAX_DIGITS = 15;

const REQUIRED: readonly Slot[] = ["time_bucket", "dimensions", "traces"];
/** A name without escapes, and a value without escapes or inner objects. */
const MEMBER = String.raw`"(\w+)"\s*:\s*("[^"\\]*"|\{[^{}]*\}|\d+|null|true|false)`;
const MEMBERS = new RegExp(MEMBER, "g");
const RECORD = new RegExp(String.raw`^\{\s*${MEMBER}(?:\s*,\s*${MEMBER})*\s*\}$`);

const QUOTE = 0x22;
const ZERO = 0x30;
const COMMA = 0x2c;
const OPEN_BRACE = 0x7b;

/**
 * Reads records that are written like an earlier record of the response by comparing texts, without `JSON.parse` and schema.
 * It leaves records that differ in any other way to them, even if only by a space. It may compare texts because the bytes of a
 * JSON value decide the value: `JSON.parse` and the schema have read the earlier record and each text of `dimensions` once.
 */
export class PlainRecords {
  readonly #fromWireRecord: FromWireRecord;
  readonly #onRecords: (records: UsageRecord[]) => void;
  readonly #buckets = new Map<string, Known<number>>();
  readonly #dimensions = new Map<string, Known<Dimensions>>();
  #slab = new Int32Array(0);
  #usedWords = 0;
  #rememberedBytes = 0;
  #layout: Layout | undefined;
  #firstBucket: unknown;
  #lastBucket: Known<number> | undefined;
  #lastDimensions: Known<Dimensions> | undefined;

  constructor(fromWireRecord: FromWireRecord, onRecords: (records: UsageRecord[]) => void) {
    this.#fromWireRecord = fromWireRecord;
    this.#onRecords = onRecords;
  }

  /**
   * The first record of the run becomes the pattern, once the response has a second bucket: within one bucket no dimensions
   * repeat, and remembering them would cost time. The schema has accepted the records.
   */
  learn(run: Buffer, records: readonly unknown[]): void {
    const bucketOf = (record: unknown) => (record as { time_bucket?: unknown }).time_bucket;
    this.#firstBucket ??= bucketOf(records[0]);
    if (bucketOf(records.at(-1)) === this.#firstBucket) return;
    const end = new ValueScanner().scan(run, 0);
    const layout = end <= MAX_PATTERN_BYTES ? layoutOf(run.toString("latin1", 0, end)) : undefined;
    if (layout === undefined || isDeepStrictEqual(layout, this.#layout)) return;
    this.#layout = layout;
    this.#buckets.clear();
    this.#dimensions.clear();
    this.#rememberedBytes = 0;
    this.#lastBucket = undefined;
    this.#lastDimensions = undefined;
  }

  /** Hands out the records from `from` on, up to the first that is written differently. `end`: after the last of them. */
  read(chunk: Buffer, from: number): { readonly count: number; readonly end: number } {
    const layout = this.#layout;
    if (layout === undefined) return { count: 0, end: from };
    const { slots, opening, after, closing } = layout;
    const records: UsageRecord[] = [];
    const view = viewOf(chunk);
    let end = from;
    let at = isAt(opening, view, from) ? from + opening.bytes : -1;
    reading: while (at !== -1) {
      let bucket = this.#lastBucket;
      let dimensions = this.#lastDimensions;
      let traces = 0;
      for (let i = 0; i < slots.length; i++) {
        const slot = slots[i];
        const next = after[i] as Text;
        if (slot === "dimensions") {
          const expected = dimensions?.next;
          if (expected !== undefined && isAt(expected.text, view, at)) dimensions = expected;
          else dimensions = this.#dimensionsAt(chunk, at, next);
          if (dimensions === undefined) break reading;
          at += dimensions.text.bytes;
        } else if (slot === "time_bucket") {
          const expected = bucket?.next;
          if (expected !== undefined && isAt(expected.text, view, at)) bucket = expected;
          else bucket = this.#bucketAt(chunk, at, next);
          if (bucket === undefined) break reading;
          at += bucket.text.bytes;
        } else {
          const first = at;
          let number = 0;
          for (let digit = digitAt(view, at); digit >= 0 && digit <= 9; digit = digitAt(view, at)) {
            number = number * 10 + digit;
            at += 1;
          }
          const digits = at - first;
          const isWhole = digits === 1 || (digits > 1 && digits <= MAX_DIGITS && digitAt(view, first) > 0);
          if (!isWhole || !isAt(next, view, at)) break reading;
          at += next.bytes;
          if (slot === "traces") traces = number;
        }
      }
      if (bucket === undefined || dimensions === undefined || !isAt(closing, view, at)) break;
      end = at + closing.bytes;
      const { workspaceId, dimensionId, dimensionName } = dimensions.value;
      records.push({ bucketStart: bucket.value, workspaceId, dimensionId, dimensionName, traces });
      this.#lastBucket = follow(this.#lastBucket, bucket);
      this.#lastDimensions = follow(this.#lastDimensions, dimensions);
      const comma = skipSpace(chunk, end);
      const next = skipSpace(chunk, comma + 1);
      if (chunk[comma] !== COMMA || !isAt(opening, view, next)) break;
      at = next + opening.bytes;
    }
    if (records.length > 0) this.#onRecords(records);
    return { count: records.length, end };
  }

  /** A timestamp has no character that JSON may escape; an escaped one is refused here and read by the plain way. */
  #bucketAt(chunk: Buffer, at: number, after: Text): Known<number> | undefined {
    const length = chunk.subarray(at + 1, at + MAX_BUCKET_BYTES).indexOf(QUOTE);
    if (chunk[at] !== QUOTE || length === -1) return undefined;
    const text = chunk.toString("latin1", at + 1, at + 1 + length);
    return this.#known(this.#buckets, { chunk, at, text, bytes: length + 2, after }, () =>
      fromWireTime(text),
    );
  }

  #dimensionsAt(chunk: Buffer, at: number, after: Text): Known<Dimensions> | undefined {
    const end = chunk[at] === OPEN_BRACE ? new ValueScanner().scan(chunk, at) : -1;
    if (end === -1) return undefined;
    const text = chunk.toString("latin1", at, end);
    const value = () => this.#parsed(chunk.subarray(at, end));
    return this.#known(this.#dimensions, { chunk, at, text, bytes: end - at, after }, value);
  }

  #known<T>(
    all: Map<string, Known<T>>,
    {
      chunk,
      at,
      text,
      bytes,
      after,
    }: { chunk: Buffer; at: number; text: string; bytes: number; after: Text },
    read: () => T | undefined,
  ): Known<T> | undefined {
    const whole = chunk.subarray(at, at + bytes + after.bytes);
    if (!isAt(after, viewOf(whole), bytes)) return undefined;
    const known = all.get(text);
    if (known !== undefined) return known;
    const value = read();
    if (value === undefined) return undefined;
    this.#rememberedBytes += whole.length;
    const isKept = this.#rememberedBytes <= MAX_REMEMBERED_BYTES;
    const entered = { text: this.#textOf(whole), value, isKept, next: undefined };
    if (isKept) all.set(text, entered);
    return entered;
  }

  /** Many texts share an array, because each array takes memory of its own. */
  #textOf(bytes: Buffer): Text {
    const words = wordsOf(bytes);
    if (this.#usedWords + words.length > this.#slab.length) {
      this.#slab = new Int32Array(Math.max(SLAB_WORDS, words.length));
      this.#usedWords = 0;
    }
    const first = this.#usedWords;
    this.#slab.set(words, first);
    this.#usedWords += words.length;
    return { words: this.#slab, first, bytes: bytes.length };
  }

  /** Undefined for text that is not JSON or that the schema refuses: the plain way then reports why. */
  #parsed(dimensions: Buffer): Dimensions | undefined {
    const scanner = new ValueScanner();
    scanner.scan(dimensions, 0);
    try {
      const [value] = parseRun(dimensions, 0, scanner.members);
      return this.#fromWireRecord({ dimensions: value }, 0);
    } catch (error) {
      if (error instanceof ResponseError) return undefined;
      throw error;
    }
  }
}

/** Takes less time than a comparison of strings, and leaves no garbage. */
function isAt({ words, first, bytes }: Text, view: DataView, at: number): boolean {
  const end = at + bytes;
  if (end > view.byteLength) return false;
  let word = first;
  let from = at;
  for (; from + 4 <= end; from += 4) if (view.getInt32(from, true) !== words[word++]) return false;
  for (; from < end; from++) if (view.getUint8(from) !== words[word++]) return false;
  return true;
}

function wordsOf(bytes: Buffer): Int32Array {
  const whole = bytes.length >> 2;
  const words = new Int32Array(whole + (bytes.length % 4));
  for (let i = 0; i < whole; i++) words[i] = bytes.readInt32LE(4 * i);
  for (let i = 0; i < bytes.length % 4; i++) words[whole + i] = bytes[4 * whole + i] as number;
  return words;
}

function viewOf({ buffer, byteOffset, byteLength }: Buffer): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

/** Not a digit behind the end. */
function digitAt(view: DataView, at: number): number {
  return at < view.byteLength ? view.getUint8(at) - ZERO : -1;
}

function follow<T>(last: Known<T> | undefined, known: Known<T>): Known<T> | undefined {
  if (!known.isKept) return undefined;
  if (last !== undefined) last.next = known;
  return known;
}

/** The layout of a whole record. Undefined if the record is no pattern for others. */
function layoutOf(record: string): Layout | undefined {
  if (!RECORD.test(record)) return undefined;
  const slots: Slot[] = [];
  const texts: string[] = [];
  let from = 0;
  for (const { 0: member, 1: name = "", 2: value = "", index } of record.matchAll(MEMBERS)) {
    const slot = slotOf(name, value);
    if (slot === undefined) continue;
    const end = index + member.length;
    slots.push(slot);
    texts.push(record.slice(from, end - value.length));
    from = end;
  }
  if (!REQUIRED.every((slot) => slots.includes(slot))) return undefined;
  const [opening, ...between] = [...texts, "", record.slice(from)].map((text) => {
    const bytes = Buffer.from(text, "latin1");
    return { words: wordsOf(bytes), first: 0, bytes: bytes.length };
  });
  return { slots, opening: opening as Text, after: between, closing: between.pop() as Text };
}

function slotOf(name: string, value: string): Slot | undefined {
  if (name === "time_bucket") return value.startsWith('"') ? name : undefined;
  if (name === "dimensions") return value.startsWith("{") ? name : undefined;
  if (!/^\d+$/.test(value)) return undefined;
  return name === "traces" ? name : "number";
}
