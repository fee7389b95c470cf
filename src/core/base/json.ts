/** Valid input nests ten levels. Code that recurses into thousands of levels would run out of stack. */
const MOST_LEVELS = 200;
const [QUOTE, BACKSLASH] = [0x22, 0x5c];
const [OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d];

export class NestedTooDeepError extends SyntaxError {
  constructor() {
    super(`it is nested more than ${MOST_LEVELS} levels deep`);
  }
}

/** For JSON from outside. Throws a `SyntaxError` for invalid JSON and, before parsing, for text that nests too deep. */
export function parseJson(text: string): unknown {
  if (isTooDeep(text)) throw new NestedTooDeepError();
  return JSON.parse(text);
}

export function isTooDeep(text: string): boolean {
  let level = 0;
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charCodeAt(at);
    if (character === QUOTE) {
      for (at += 1; at < text.length && text.charCodeAt(at) !== QUOTE; at += 1) {
        if (text.charCodeAt(at) === BACKSLASH) at += 1;
      }
    } else if (character === OPEN_BRACKET || character === OPEN_BRACE) {
      level += 1;
      if (level > MOST_LEVELS) return true;
    } else if (character === CLOSE_BRACKET || character === CLOSE_BRACE) level -= 1;
  }
  return false;
}
