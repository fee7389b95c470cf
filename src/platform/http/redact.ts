/** Hides the API key in messages, URLs, body excerpts and causes. */

export type Redact = (text: string) => string;

const HIDDEN = "[redacted]";
/** Deeper causes are cut; undici's are two deep. */
const MAX_DEPTH = 5;

/**
 * Returns a function that hides the secret: as it is, percent-encoded and JSON-escaped, in any case (a host name is lower-case).
 * It also hides a beginning from half its length on, because a shortened message may end within the secret.
 */
export function createRedactor(secret: string): Redact {
  const encoded = [encodeURIComponent(secret), encodeURI(secret), JSON.stringify(secret).slice(1, -1)];
  // Longest first, as a pattern takes the first that fits.
  const beginnings = Array.from({ length: Math.floor(secret.length / 2) + 1 }, (_, cut) =>
    secret.slice(0, secret.length - cut),
  );
  const literals = [...encoded, ...beginnings].map((text) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"));
  const pattern = new RegExp(literals.join("|"), "gi");
  return (text) => text.replace(pattern, HIDDEN);
}

/**
 * A copy of an error with name, message, stack, code and causes, without the secret in any of them. The original is not kept:
 * undici's parser errors carry the bytes of the answer, and an answer may repeat the key.
 */
export function withoutSecret(error: unknown, redact: Redact, depth = 0): Error {
  if (!(error instanceof Error)) return new Error(redact(String(error)));
  // One error for each address that was tried, or at most a cause.
  const inner: unknown[] = error instanceof AggregateError ? error.errors : error.cause ? [error.cause] : [];
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
