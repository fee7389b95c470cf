import type { UsageRecord } from "../../domain/usage/record.ts";
import { parseJson } from "../../json.ts";
import { AnswerFault } from "./answer-fault.ts";
import { hasKeyTwice, skipSpace, ValueScanner } from "./json-scan.ts";
import type { FromWireRecord } from "./wire-record.ts";
import { fromWireTime } from "./wire-values.ts";

/** Parts that differ from record to record; `number` is a member that is not read. */
type Slot = "time_bucket" | "dimensions" | "traces" | "number";

interface Layout {
  readonly slots: readonly Slot[];
  /** The text before each slot, and after the last one. */
  readonly texts: readonly string[];
}

interface Dimensions extends Pick<UsageRecord, "workspaceId" | "dimensionId" | "dimensionName"> {
  readonly text: string;
  /** The dimensions that followed last: answers repeat the order of ids in each bucket. */
  next: Dimensions | undefined;
}

/** Some 50,000 `dimensions` and 15 MB. Others are parsed each time. */
const MAX_REMEMBERED_CHARACTERS = 4_194_304;
const MAX_PATTERN_BYTES = 4096;
/** A timestamp with its closing quotation mark takes 36 at most. */
const MAX_BUCKET_BYTES = 64;
/** Fewer than 2^53 has. */
const MAX_DIGITS = 15;

const REQUIRED: readonly Slot[] = ["time_bucket", "dimensions", "traces"];
/** A name that needs no escapes, and a value without escapes or inner objects. */
const MEMBER = String.raw`"(\w+)"\s*:\s*("[^"\\]*"|\{[^{}]*\}|\d+|null|true|false)`;
const MEMBERS = new RegExp(MEMBER, "g");
const RECORD = new RegExp(String.raw`^\{\s*${MEMBER}(?:\s*,\s*${MEMBER})*\s*\}$`);

const QUOTE = 0x22;
const ZERO = 0x30;
const COMMA = 0x2c;
const OPEN_BRACE = 0x7b;

/**
 * Reads records that are written like an earlier one except for bucket, dimensions and numbers, in a fraction of the time of
 * `JSON.parse` and the schema. Any other spelling is left to those. Comparing texts is safe: `JSON.parse` and the schema have
 * read the pattern and each text of `dimensions` before. Memory: the texts of `dimensions`, up to a bound.
 */
export class PlainRecords {
  readonly #fromWireRecord: FromWireRecord;
  readonly #onRecords: (records: UsageRecord[]) => void;
  readonly #remembered = new Map<string, Dimensions>();
  #rememberedCharacters = 0;
  #layout: Layout | undefined;
  #last: Dimensions | undefined;
  /** With the closing quotation mark. */
  #bucketText = "\0";
  #bucketStart = 0;
  /** Where the record that was read last ends. */
  #end = 0;

  constructor(fromWireRecord: FromWireRecord, onRecords: (records: UsageRecord[]) => void) {
    this.#fromWireRecord = fromWireRecord;
    this.#onRecords = onRecords;
  }

  /** Takes the first of these records as the pattern. They were read without a fault. */
  learn(run: Buffer): void {
    const end = new ValueScanner().scan(run, 0);
    if (end <= MAX_PATTERN_BYTES) this.#layout = layoutOf(run.toString("latin1", 0, end)) ?? this.#layout;
  }

  /** Hands out the records from `from` on, up to the first that is written differently. `end`: after the last of them. */
  read(chunk: Buffer, from: number): { readonly count: number; readonly end: number } {
    const records: UsageRecord[] = [];
    if (this.#layout !== undefined) {
      // Each byte becomes one character, so indexes of the text and of the chunk are the same.
      const text = chunk.toString("latin1");
      for (let at = from; ; ) {
        const record = this.#recordAt(this.#layout, chunk, text, at);
        if (record === undefined) break;
        records.push(record);
        const comma = skipSpace(chunk, this.#end);
        if (chunk[comma] !== COMMA) break;
        at = skipSpace(chunk, comma + 1);
      }
    }
    if (records.length > 0) this.#onRecords(records);
    return { count: records.length, end: records.length > 0 ? this.#end : from };
  }

  #recordAt({ slots, texts }: Layout, chunk: Buffer, text: string, from: number): UsageRecord | undefined {
    let at = from;
    let dimensions: Dimensions | undefined;
    let traces = 0;
    for (let i = 0; i < slots.length; i++) {
      const before = texts[i] as string;
      if (!stands(before, text, at)) return undefined;
      at += before.length;
      const slot = slots[i];
      if (slot === "dimensions") {
        dimensions = this.#dimensionsAt(chunk, text, at);
        if (dimensions === undefined) return undefined;
        at += dimensions.text.length;
      } else if (slot === "time_bucket") {
        if (!stands(this.#bucketText, text, at) && !this.#readBucket(chunk, at)) return undefined;
        at += this.#bucketText.length;
      } else {
        const end = endOfNumber(text, at);
        if (end === -1) return undefined;
        if (slot === "traces") traces = numberIn(text, at, end);
        at = end;
      }
    }
    const after = texts[slots.length] as string;
    if (dimensions === undefined || !stands(after, text, at)) return undefined;
    this.#end = at + after.length;
    const { workspaceId, dimensionId, dimensionName } = dimensions;
    return { bucketStart: this.#bucketStart, workspaceId, dimensionId, dimensionName, traces };
  }

  /** A timestamp has no character that JSON writes in another way. */
  #readBucket(chunk: Buffer, at: number): boolean {
    const end = chunk.subarray(at, at + MAX_BUCKET_BYTES).indexOf(QUOTE);
    // A copy: a part of the chunk's text would keep all of it in memory.
    const bucket = chunk.toString("latin1", at, at + end + 1);
    const instant = end === -1 ? undefined : fromWireTime(bucket.slice(0, -1));
    if (instant === undefined) return false;
    this.#bucketText = bucket;
    this.#bucketStart = instant;
    return true;
  }

  #dimensionsAt(chunk: Buffer, text: string, at: number): Dimensions | undefined {
    const expected = this.#last?.next;
    if (expected !== undefined && stands(expected.text, text, at)) {
      this.#last = expected;
      return expected;
    }
    if (chunk[at] !== OPEN_BRACE) return undefined;
    const end = new ValueScanner().scan(chunk, at);
    if (end === -1) return undefined;
    const known = this.#remembered.get(text.slice(at, end));
    if (known === undefined) return this.#enter(chunk, at, end);
    this.#follow(known);
    return known;
  }

  /** Undefined if JSON or the schema refuses it; the next reader says why. */
  #enter(chunk: Buffer, at: number, end: number): Dimensions | undefined {
    const entered = this.#parse(chunk.subarray(at, end));
    if (entered === undefined) return undefined;
    this.#rememberedCharacters += entered.text.length;
    const isKept = this.#rememberedCharacters <= MAX_REMEMBERED_CHARACTERS;
    if (isKept) this.#remembered.set(entered.text, entered);
    this.#follow(isKept ? entered : undefined);
    return entered;
  }

  #follow(dimensions: Dimensions | undefined): void {
    if (this.#last !== undefined) this.#last.next = dimensions;
    this.#last = dimensions;
  }

  #parse(bytes: Buffer): Dimensions | undefined {
    try {
      const dimensions = parseJson(bytes.toString("utf8"));
      if (hasKeyTwice(bytes, dimensions)) return undefined;
      const { workspaceId, dimensionId, dimensionName } = this.#fromWireRecord({ dimensions }, 0);
      return { text: bytes.toString("latin1"), workspaceId, dimensionId, dimensionName, next: undefined };
    } catch (error) {
      if (error instanceof SyntaxError || error instanceof AnswerFault) return undefined;
      throw error;
    }
  }
}

/** Takes a quarter of the time of `startsWith`: no character is copied. */
function stands(part: string, text: string, at: number): boolean {
  return text.slice(at, at + part.length) === part;
}

/** The index after the digits of a whole number below 2^53; -1 for anything else, or a cut number. */
function endOfNumber(text: string, from: number): number {
  let end = from;
  while (isDigit(text.charCodeAt(end))) end += 1;
  const digits = end - from;
  const isWhole = digits === 1 || (digits > 1 && digits <= MAX_DIGITS && text.charCodeAt(from) !== ZERO);
  return isWhole ? end : -1;
}

function numberIn(text: string, from: number, end: number): number {
  let number = 0;
  for (let at = from; at < end; at++) number = number * 10 + text.charCodeAt(at) - ZERO;
  return number;
}

function isDigit(character: number): boolean {
  return character >= ZERO && character <= ZERO + 9;
}

/** Undefined if the record is no pattern for others. */
function layoutOf(record: string): Layout | undefined {
  if (!RECORD.test(record)) return undefined;
  const slots: Slot[] = [];
  const texts: string[] = [];
  const names = new Set<string>();
  let from = 0;
  for (const { 0: member, 1: name = "", 2: value = "", index } of record.matchAll(MEMBERS)) {
    if (names.has(name)) return undefined;
    names.add(name);
    const slot = slotOf(name, value);
    if (slot === undefined) continue;
    const end = index + member.length;
    slots.push(slot);
    texts.push(record.slice(from, end - value.length + (slot === "time_bucket" ? 1 : 0)));
    from = end;
  }
  texts.push(record.slice(from));
  return REQUIRED.every((slot) => slots.includes(slot)) ? { slots, texts } : undefined;
}

function slotOf(name: string, value: string): Slot | undefined {
  if (name === "time_bucket") return value.startsWith('"') ? name : undefined;
  if (name === "dimensions") return value.startsWith("{") ? name : undefined;
  if (endOfNumber(value, 0) !== value.length) return undefined;
  return name === "traces" ? name : "number";
}
