export type Redact = (text: string) => string;

const HIDDEN = "[redacted]";
const SPECIAL = /[\\^$.*+?()[\]{}|/]/g;
/** undici's causes are two deep. */
const MAX_DEPTH = 5;
/** Length of the parts of a sent text that are hidden: a response may cut it anywhere. Longer than `https://`. */
const PART = 9;
/** Shorter texts are no secrets, and hiding them would spoil every sentence. */
const SHORTEST = 4;

/**
 * Hides the secret as it is, percent-encoded and JSON-escaped, in upper or lower case. Also hides beginnings from half its
 * length on, because a shortened message may end within the secret.
 */
export function createRedactor(secret: string): Redact {
  const encoded = [encodeURIComponent(secret), encodeURI(secret), JSON.stringify(secret).slice(1, -1)];
  const beginnings = Array.from({ length: Math.floor(secret.length / 2) + 1 }, (_, cut) =>
    secret.slice(0, secret.length - cut),
  );
  const literals = [...encoded, ...beginnings].map((text) => text.replace(SPECIAL, "\\$&"));
  const pattern = new RegExp(literals.join("|"), "gi");
  return (text) => text.replace(pattern, HIDDEN);
}

/**
 * Hides texts and numbers that were sent: plain, JSON-escaped or percent-encoded, whole or in part. Texts shorter than `PART`
 * are hidden as whole words. Field names and values of `name` stay, so that an error shows what it is about.
 */
export function hideTexts(text: string, sent: unknown): string {
  const forms = new Set(leavesOf(sent).flatMap(encodingsOf));
  const inText = new Set<string>();
  for (let at = 0; at + PART <= text.length; at++) inText.add(text.slice(at, at + PART));
  const hidden = new Set<string>();
  const words: string[] = [];
  for (const form of forms) {
    for (let at = 0; at + PART <= form.length; at++) {
      const part = form.slice(at, at + PART);
      if (inText.has(part)) hidden.add(part);
    }
    if (form.length >= SHORTEST && form.length < PART) words.push(form.replace(SPECIAL, "\\$&"));
  }
  const isHidden = new Uint8Array(text.length);
  for (let at = 0; at + PART <= text.length && hidden.size > 0; at++) {
    if (hidden.has(text.slice(at, at + PART))) isHidden.fill(1, at, at + PART);
  }
  let shown = "";
  for (let at = 0; at < text.length; at++) {
    if (isHidden[at] === 0) shown += text[at];
    else if (isHidden[at - 1] !== 1) shown += HIDDEN;
  }
  if (words.length === 0) return shown;
  return shown.replace(
    new RegExp(`(?<![\\p{L}\\p{N}])(?:${words.join("|")})(?![\\p{L}\\p{N}])`, "gu"),
    HIDDEN,
  );
}

/** No recursion, because a caller's body may have any depth. */
function leavesOf(sent: unknown): string[] {
  const leaves: string[] = [];
  const open = [sent];
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value === "string" || typeof value === "number") leaves.push(String(value));
    if (typeof value !== "object" || value === null) continue;
    for (const [name, one] of Object.entries(value)) {
      if (name !== "name" || typeof one !== "string") open.push(one);
    }
  }
  return leaves;
}

function encodingsOf(text: string): string[] {
  const json = JSON.stringify(text).slice(1, -1);
  // Python servers escape other characters than ASCII like this.
  const ascii = json.replace(/[^\0-~]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return [text, json, ascii, encodeURIComponent(text.toWellFormed())];
}

/**
 * Copies an error and its causes without the secret. The original is dropped: undici's parser errors carry the response's
 * bytes, which may repeat the key.
 */
export function withoutSecret(error: unknown, redact: Redact, depth = 0): Error {
  if (!(error instanceof Error)) return new Error(redact(String(error)));
  // An `AggregateError` has one error for each address that was tried. Others have at most one cause.
  const cause: unknown[] = error.cause ? [error.cause] : [];
  const inner = error instanceof AggregateError ? error.errors : cause;
  const causes = depth < MAX_DEPTH ? inner.map((one) => withoutSecret(one, redact, depth + 1)) : [];
  const copy =
    causes.length > 1 ? new AggregateError(causes, "") : new Error("", causes[0] && { cause: causes[0] });
  const { code } = error as { code?: unknown };
  return Object.assign(copy, {
    name: error.name,
    message: redact(error.message),
    stack: redact(error.stack ?? ""),
    ...(typeof code === "string" ? { code: redact(code) } : {}),
  });
}
