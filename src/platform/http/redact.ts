/** Keeps the API key out of everything that leaves the client: messages, URLs, body excerpts, causes. */

export type Redact = (text: string) => string;

const HIDDEN = "[redacted]";
/** Longer chains of causes than this are cut; undici's are two deep. */
const MAX_DEPTH = 5;

/**
 * A function that hides the secret as it stands, percent-encoded and JSON-escaped, in any case (a host name comes in
 * lower case), and a beginning of it from half its length on: what a message shortens may end within the secret.
 */
export function createRedactor(secret: string): Redact {
  const half = Math.ceil(secret.length / 2);
  const rest = [...secret.slice(half)].reduceRight(
    (inner, character) => `(?:${literal(character)}${inner})?`,
    "",
  );
  const forms = [encodeURIComponent(secret), encodeURI(secret), JSON.stringify(secret).slice(1, -1)].map(
    literal,
  );
  const pattern = new RegExp([...forms, literal(secret.slice(0, half)) + rest].join("|"), "gi");
  return (text) => text.replace(pattern, HIDDEN);
}

function literal(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}

/**
 * A copy of an error that holds no more than name, message, code and causes, each without the secret. The original is
 * not kept: undici's parser errors carry the bytes of the answer, and an answer may repeat the key.
 */
export function withoutSecret(error: unknown, redact: Redact, depth = 0): Error {
  if (!(error instanceof Error)) return new Error(redact(String(error)));
  const inner = depth < MAX_DEPTH ? innerErrors(error) : [];
  const causes = inner.map((one) => withoutSecret(one, redact, depth + 1));
  const message = redact(error.message);
  const copy =
    causes.length > 1
      ? new AggregateError(causes, message)
      : new Error(message, causes[0] === undefined ? undefined : { cause: causes[0] });
  copy.name = error.name;
  if (error.stack !== undefined) copy.stack = redact(error.stack);
  const { code } = error as { code?: unknown };
  if (typeof code === "string") Object.assign(copy, { code: redact(code) });
  return copy;
}

/** An `AggregateError` (one per address that was tried) has errors, any other at most a cause. */
function innerErrors(error: Error): unknown[] {
  if (error instanceof AggregateError) return error.errors;
  return error.cause === undefined ? [] : [error.cause];
}
