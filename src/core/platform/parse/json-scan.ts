import { recordError } from "./response-error.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACE = 0x7d;
const CLOSE_BRACKET = 0x5d;
const BRACE_BIT = 0x20;
const COLON = 0x3a;

/**
 * Finds the end of one JSON object, array or string in pieces. Knows only strings, escapes and depth: `JSON.parse` checks
 * the rest. Bytes of multi-byte UTF-8 characters are never ASCII, so a piece may end anywhere.
 */
export class ValueScanner {
  /** Members at any depth of the last value, each of which has one colon outside of strings. */
  members = 0;
  #members = 0;
  #depth = 0;
  #inString = false;
  #escaped = false;

  /**
   * The first piece has the opening character at `from`. Returns the index after the value's last character, or -1 if the
   * piece ends first.
   */
  scan(piece: Uint8Array, from: number): number {
    const length = piece.length;
    let depth = this.#depth;
    let inString = this.#inString;
    let members = this.#members;
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
        if (depth === 0) return this.#finish(at, members);
      }
      while (at < length) {
        const byte = piece[at] ?? 0;
        at += 1;
        if (byte === QUOTE) {
          inString = true;
          break;
        }
        if (byte < OPEN_BRACKET) {
          if (byte === COLON) members += 1;
          continue;
        }
        // Brackets and braces differ in one bit.
        const brace = byte | BRACE_BIT;
        if (brace === OPEN_BRACE) depth += 1;
        else if (brace === CLOSE_BRACE) {
          depth -= 1;
          if (depth === 0) return this.#finish(at, members);
        }
      }
    }
    this.#depth = depth;
    this.#inString = inString;
    this.#members = members;
    return -1;
  }

  #finish(end: number, members: number): number {
    this.#depth = 0;
    this.#inString = false;
    this.#members = 0;
    this.members = members;
    return end;
  }
}

export function skipSpace(chunk: Uint8Array, from: number): number {
  let at = from;
  while (at < chunk.length && isSpace(chunk[at] ?? 0)) at += 1;
  return at;
}

export function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

export function isDelimiter(byte: number): boolean {
  return byte <= 0x20 || byte === 0x2c || byte === CLOSE_BRACE || byte === CLOSE_BRACKET;
}

/** True if an object has a key twice, after unescaping. `value`: the result of `JSON.parse`, which keeps only the last. */
export function hasKeyTwice(json: Uint8Array, value: unknown): boolean {
  const scanner = new ValueScanner();
  scanner.scan(json, 0);
  return scanner.members !== membersOf(value);
}

/** No recursion: the server decides how deep the JSON is. */
function membersOf(value: unknown): number {
  let members = 0;
  const open = [value];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next !== "object" || next === null) continue;
    if (Array.isArray(next)) {
      for (const one of next) if (typeof one === "object" && one !== null) open.push(one);
      continue;
    }
    for (const key in next) {
      members += 1;
      const one = (next as Record<string, unknown>)[key];
      if (typeof one === "object" && one !== null) open.push(one);
    }
  }
  return members;
}

/**
 * Parses whole objects with commas between them. `members`: the number of their members, at any depth. `first`: index of the
 * first object in `usage`. Throws `ResponseError` for a record that is not JSON or has a key twice.
 */
export function parseRun(run: Buffer, first: number, members: number): unknown[] {
  const records = parsed(`[${run.toString("utf8")}]`, members);
  if (records !== undefined) return records as unknown[];
  const scanner = new ValueScanner();
  let index = first;
  for (let at = 0; at !== -1; index += 1) {
    const end = scanner.scan(run, at);
    if (parsed(run.toString("utf8", at, end), scanner.members) === undefined) break;
    at = run.indexOf(OPEN_BRACE, end);
  }
  throw recordError(`record ${index} (usage[${index}]) is not JSON, or has a key twice`, `usage.${index}`);
}

/** Undefined if the text is not JSON, or has a key twice. */
function parsed(json: string, members: number): unknown {
  try {
    const value: unknown = JSON.parse(json);
    return membersOf(value) === members ? value : undefined;
  } catch {
    return undefined;
  }
}
