import { recordFault } from "./answer-fault.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACE = 0x7d;
const CLOSE_BRACKET = 0x5d;
const BRACE_BIT = 0x20;
const COLON = 0x3a;

/**
 * Finds the end of one JSON object, array or string in pieces. It knows only strings, escapes and depth: `JSON.parse` checks
 * the rest. Bytes of multi-byte UTF-8 characters are never ASCII, so a piece may end anywhere.
 */
export class ValueScanner {
  #depth = 0;
  #inString = false;
  #escaped = false;

  /**
   * The first piece has the opening character at `from`. Returns the index after the value's last character, or -1 if the piece
   * ends first.
   */
  scan(piece: Uint8Array, from: number): number {
    const length = piece.length;
    let depth = this.#depth;
    let inString = this.#inString;
    let at = from;
    if (this.#escaped && at < length) {
      this.#escaped = false;
      at += 1;
    }
    while (at < length) {
      if (inString) {
        while (at < length && piece[at] !== QUOTE && piece[at] !== BACKSLASH) at += 1;
        if (at === length) break;
        if (piece[at] === BACKSLASH) {
          // Skips the escaped character, which may be the next piece's first.
          if (at + 1 === length) this.#escaped = true;
          at += 2;
          continue;
        }
        inString = false;
        at += 1;
        if (depth === 0) return this.#finish(at);
      }
      while (at < length) {
        const byte = piece[at] ?? 0;
        at += 1;
        if (byte === QUOTE) {
          inString = true;
          break;
        }
        if (byte < OPEN_BRACKET) continue;
        // Brackets and braces differ in one bit.
        const brace = byte | BRACE_BIT;
        if (brace === OPEN_BRACE) depth += 1;
        else if (brace === CLOSE_BRACE) {
          depth -= 1;
          if (depth === 0) return this.#finish(at);
        }
      }
    }
    this.#depth = depth;
    this.#inString = inString;
    return -1;
  }

  #finish(end: number): number {
    this.#depth = 0;
    this.#inString = false;
    return end;
  }
}

/** Index of the first byte from `from` on that is no whitespace; the chunk's length if there is none. */
export function skipSpace(chunk: Uint8Array, from: number): number {
  let at = from;
  while (at < chunk.length && isSpace(chunk[at] ?? 0)) at += 1;
  return at;
}

export function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** Whitespace, comma, closing brace or bracket: what may follow a literal. */
export function isDelimiter(byte: number): boolean {
  return byte <= 0x20 || byte === 0x2c || byte === CLOSE_BRACE || byte === CLOSE_BRACKET;
}

/**
 * Finds a repeated key, however it is spelled. `value` is the result of `JSON.parse`, which keeps the last of two. Each member
 * has one colon outside of strings.
 */
export function hasKeyTwice(json: Uint8Array, value: unknown): boolean {
  let members = 0;
  for (let at = 0; at < json.length; at += 1) {
    if (json[at] === COLON) members += 1;
    if (json[at] !== QUOTE) continue;
    for (at += 1; at < json.length && json[at] !== QUOTE; at += 1) if (json[at] === BACKSLASH) at += 1;
  }
  return members !== membersOf(value);
}

/** No recursion: the server decides how deep the JSON is. */
function membersOf(value: unknown): number {
  let members = 0;
  const open = [value];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next !== "object" || next === null) continue;
    const values = Object.values(next);
    if (!Array.isArray(next)) members += values.length;
    for (const one of values) if (typeof one === "object" && one !== null) open.push(one);
  }
  return members;
}

/**
 * `run` has whole objects with commas between; `first` is the index of the first one in `usage`. Throws `AnswerFault` for a
 * record that is not JSON or has a key twice.
 */
export function parseRun(run: Buffer, first: number): unknown[] {
  const records = parsed(run, 0, run.length, (json) => `[${json}]`);
  if (records !== undefined) return records as unknown[];
  const scanner = new ValueScanner();
  let index = first;
  for (let at = 0; at !== -1; index += 1) {
    const end = scanner.scan(run, at);
    if (parsed(run, at, end) === undefined) break;
    at = run.indexOf(OPEN_BRACE, end);
  }
  throw recordFault(`record ${index} (usage[${index}]) is not JSON, or has a key twice`, `usage.${index}`);
}

/** Undefined if it is not JSON, or has a key twice. */
function parsed(run: Buffer, from: number, to: number, whole = (json: string) => json): unknown {
  try {
    const value: unknown = JSON.parse(whole(run.toString("utf8", from, to)));
    return hasKeyTwice(run.subarray(from, to), value) ? undefined : value;
  } catch {
    return undefined;
  }
}
