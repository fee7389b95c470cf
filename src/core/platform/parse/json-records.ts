import { parseJson } from "../../base/json.ts";
import { isDelimiter, isSpace, parseRun, skipSpace, ValueScanner } from "./json-scan.ts";
import type { PlainRecords } from "./plain-records.ts";
import { cutError, foreignError, recordError } from "./response-error.ts";

/** Receives unchecked records in order. `first`: index of the first record in `usage`. */
type OnRaw = (records: unknown[], first: number) => void;

/** A record has some 200 bytes. A larger record must not fill the memory. */
const MAX_RECORD_BYTES = 1_048_576;
/** Limit of keys, literals and the stride. */
const MAX_MEMBER_BYTES = 65_536;
/** Some servers send a byte order mark, and chunks may split it. */
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

type State =
  | "start"
  | "first_key"
  | "key"
  | "in_key"
  | "colon"
  | "value"
  | "in_value"
  | "in_literal"
  | "after_value"
  | "first_record"
  | "record"
  | "in_record"
  | "after_record"
  | "done";

/**
 * Cuts the records out of `{"stride": ..., "usage": [...]}` as bytes arrive. Members may have any order; unknown ones are
 * skipped. Memory: one chunk and at most one record. Throws `ResponseError`.
 */
export class JsonRecordCutter {
  readonly #onRaw: OnRaw;
  readonly #plain: PlainRecords | undefined;
  readonly #scanner = new ValueScanner();
  readonly #members = new Set<string>();
  #state: State = "start";
  #markBytes = 0;
  #key = "";
  #pieces: Buffer[] = [];
  #pieceBytes = 0;
  #records = 0;
  #stride: unknown;

  /** Records that `plain` reads are not passed to `onRaw`. */
  constructor(onRaw: OnRaw, plain?: PlainRecords) {
    this.#onRaw = onRaw;
    this.#plain = plain;
  }

  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#state === "in_record" || this.#state === "first_record" || this.#state === "record") {
        at = this.#readRecords(chunk, at);
      } else if (this.#state === "in_key" || this.#state === "in_value") {
        at = this.#readValue(chunk, at);
      } else if (this.#state === "in_literal") {
        at = this.#readLiteral(chunk, at);
      } else {
        at = this.#step(chunk, at);
      }
    }
  }

  end(): { readonly stride: unknown; readonly records: number } {
    if (this.#state !== "done")
      throw cutError(`the response ends within its JSON, after ${this.#records} records`);
    for (const name of ["stride", "usage"]) {
      if (!this.#members.has(name))
        throw foreignError(`the response has no \`${name}\`; it has ${this.#found()}`);
    }
    return { stride: this.#stride, records: this.#records };
  }

  #step(chunk: Buffer, at: number): number {
    const byte = chunk[at] ?? 0;
    if (isSpace(byte)) return at + 1;
    const character = String.fromCharCode(byte);
    switch (this.#state) {
      case "start":
        if (character === "{") return this.#go("first_key", at + 1);
        if (byte === BYTE_ORDER_MARK[this.#markBytes]) {
          this.#markBytes += 1;
          return at + 1;
        }
        throw foreignError(`the response is not JSON: it begins with ${excerpt(chunk, at)}`);
      case "first_key":
      case "key":
        if (character === '"') return this.#go("in_key", at);
        if (character === "}" && this.#state === "first_key") return this.#go("done", at + 1);
        break;
      case "colon":
        if (character === ":") return this.#go("value", at + 1);
        break;
      case "value":
        return this.#beginValue(character, at);
      case "after_value":
        if (character === ",") return this.#go("key", at + 1);
        if (character === "}") return this.#go("done", at + 1);
        break;
      case "after_record":
        if (character === ",") return this.#go("record", at + 1);
        if (character === "]") return this.#go("after_value", at + 1);
        break;
      default:
        throw foreignError(`something follows the end of the response's JSON: ${excerpt(chunk, at)}`);
    }
    throw this.#unexpected(character);
  }

  #beginValue(character: string, at: number): number {
    if (this.#key === "usage") {
      if (character === "[") return this.#go("first_record", at + 1);
      throw foreignError("the response's `usage` is not an array");
    }
    return this.#go(/["{[]/.test(character) ? "in_value" : "in_literal", at);
  }

  #readValue(chunk: Buffer, at: number): number {
    const kept = this.#state === "in_key" || this.#key === "stride";
    const end = this.#scanner.scan(chunk, at);
    if (kept) this.#keepMember(chunk.subarray(at, end === -1 ? chunk.length : end));
    if (end === -1) return chunk.length;
    const value = kept ? this.#parse(this.#taken().toString("utf8")) : undefined;
    if (this.#state === "in_key") {
      this.#openMember(String(value));
      return this.#go("colon", end);
    }
    if (this.#key === "stride") this.#stride = value;
    return this.#go("after_value", end);
  }

  #openMember(key: string): void {
    const known = key === "usage" || key === "stride";
    if (known && this.#members.has(key)) throw foreignError(`the response has \`${key}\` twice`);
    if (known || this.#members.size < 12) this.#members.add(key);
    this.#key = key;
  }

  #readLiteral(chunk: Buffer, at: number): number {
    let end = at;
    while (end < chunk.length && !isDelimiter(chunk[end] ?? 0)) end += 1;
    this.#keepMember(chunk.subarray(at, end));
    if (end === chunk.length) return end;
    const value = this.#parse(this.#taken().toString("utf8"));
    if (this.#key === "stride") this.#stride = value;
    return this.#go("after_value", end);
  }

  /** Parsing the records of a chunk together costs less than one `JSON.parse` each. */
  #readRecords(chunk: Buffer, from: number): number {
    let at = from;
    if (this.#state === "in_record") {
      const end = this.#scanner.scan(chunk, at);
      this.#keepRecord(chunk.subarray(at, end === -1 ? chunk.length : end));
      if (end === -1) return chunk.length;
      this.#handOut(this.#taken(), 1, this.#scanner.members);
      return this.#go("after_record", end);
    }
    at = skipSpace(chunk, at);
    if (at === chunk.length) return at;
    if (chunk[at] === 0x5d && this.#state === "first_record") return this.#go("after_value", at + 1);
    const plain = this.#plain?.read(chunk, at);
    if (plain !== undefined && plain.count > 0) {
      this.#records += plain.count;
      return this.#go("after_record", plain.end);
    }
    const runStart = at;
    let runEnd = at;
    let count = 0;
    let members = 0;
    for (;;) {
      if (chunk[at] !== 0x7b) {
        this.#handOut(chunk.subarray(runStart, runEnd), count, members);
        throw this.#noRecord(chunk[at] ?? 0);
      }
      const end = this.#scanner.scan(chunk, at);
      if (end === -1) {
        this.#handOut(chunk.subarray(runStart, runEnd), count, members);
        this.#keepRecord(chunk.subarray(at));
        return this.#go("in_record", chunk.length);
      }
      runEnd = end;
      count += 1;
      members += this.#scanner.members;
      const comma = skipSpace(chunk, end);
      const next = chunk[comma] === 0x2c ? skipSpace(chunk, comma + 1) : chunk.length;
      if (next >= chunk.length) {
        this.#handOut(chunk.subarray(runStart, runEnd), count, members);
        return this.#go("after_record", end);
      }
      at = next;
    }
  }

  #handOut(run: Buffer, count: number, members: number): void {
    if (count === 0) return;
    const first = this.#records;
    const records = parseRun(run, first, members);
    this.#records += count;
    this.#onRaw(records, first);
    this.#plain?.learn(run, records);
  }

  #noRecord(byte: number): Error {
    const character = String.fromCharCode(byte);
    return /["[\-0-9tfn]/.test(character) ? this.#wrong("is not an object") : this.#unexpected(character);
  }

  #keepRecord(piece: Buffer): void {
    if (this.#keep(piece) > MAX_RECORD_BYTES) throw this.#wrong(`is larger than ${MAX_RECORD_BYTES} bytes`);
  }

  #wrong(what: string): Error {
    const index = this.#records;
    return recordError(`record ${index} (usage[${index}]) ${what}`, `usage.${index}`);
  }

  #keepMember(piece: Buffer): void {
    if (this.#keep(piece) <= MAX_MEMBER_BYTES) return;
    throw foreignError(
      `a key, a literal or the stride of the response's JSON is larger than ${MAX_MEMBER_BYTES} bytes`,
    );
  }

  #keep(piece: Buffer): number {
    this.#pieces.push(piece);
    this.#pieceBytes += piece.length;
    return this.#pieceBytes;
  }

  #taken(): Buffer {
    const [only] = this.#pieces;
    const whole = this.#pieces.length === 1 && only !== undefined ? only : Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#pieceBytes = 0;
    return whole;
  }

  #go(state: State, at: number): number {
    this.#state = state;
    return at;
  }

  #parse(text: string): unknown {
    try {
      return parseJson(text);
    } catch {
      throw this.#unexpected(text);
    }
  }

  #unexpected(text: string): Error {
    return foreignError(
      `the response is not JSON: unexpected ${JSON.stringify(text.slice(0, 20))} after ${this.#records} records`,
    );
  }

  #found(): string {
    const names = [...this.#members].map((name) => JSON.stringify(name.slice(0, 40)));
    return names.length === 0 ? "no fields" : names.join(", ");
  }
}

function excerpt(chunk: Buffer, at: number): string {
  return JSON.stringify(chunk.toString("utf8", at, at + 60).toWellFormed());
}
