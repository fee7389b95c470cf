const HIDDEN = "[redacted]";

export const NOT_ENCODED =
  "has a character that would cut a user name, password or path. Percent-encode it: @ as %40, / as %2F, ? as %3F, # as %23, \\ as %5C, % as %25, a space as %20";

/**
 * True if a URL may be read otherwise than meant. A `/`, `?`, `#` or `\` in a password ends the host. An `@` after it shows
 * that the rest of the password became the path. Its beginning became a host and port, which messages show.
 */
export function isCut(text: string): boolean {
  const [, authority = "", rest = ""] = /^[a-z][a-z\d+.-]*:\/\/([^/?#\\]*)(.*)$/is.exec(text) ?? [];
  // A web address without a colon before its path has no login. Webhooks of Teams have an @ in their path.
  const hasWebHost = /^https?:\/\/[\w-]+(\.[\w-]+)+\//i.test(text);
  // URL parsers leave out tabs and line ends, and pg decodes twice beside a space or a lone %.
  if ((rest.includes("@") && !hasWebHost) || /[\s\p{Cc}\p{Cf}\\#]|\?$|%(?![\da-f]{2})/iu.test(text))
    return true;
  try {
    decodeURIComponent(authority);
    return false;
  } catch {
    return true;
  }
}

/** Returns why a text is no such URL: `otherwise` or `NOT_ENCODED`. Repeats no part of it, which may be a password. */
export function urlProblem(text: string, protocols: RegExp, otherwise: string): string | undefined {
  if (isCut(text)) return NOT_ENCODED;
  const isUrl = protocols.test(text.replace(/:\/\/.*$/s, ":").toLowerCase()) && URL.canParse(text);
  return isUrl ? undefined : otherwise;
}

/** A URL for messages, logs and pages: without parameters, and with a user only before a password. */
export function shownUrl(text: string): string {
  if (isCut(text) || !URL.canParse(text)) return "(an address that is not valid)";
  const { protocol, username, password, host, pathname } = new URL(text);
  // A user without a password may be a password.
  const user = password !== "" ? `${username}:${HIDDEN}@` : username !== "" ? `${HIDDEN}@` : "";
  return `${protocol}//${user}${host}${pathname}`;
}

/** Undefined for a folder or `s3://bucket/prefix`. Another scheme or a login would be shown as part of the path. */
export function placeProblem(address: string): string | undefined {
  const isBucket = /^s3:\/\/[\w.-]+(\/[^@?#\p{Cc}]*)?$/u.test(address);
  if (isBucket || !/^[\s\p{Cf}]*[a-z][a-z\d+.-]*:/iu.test(address)) return undefined;
  return "is neither a folder nor s3://bucket/prefix. Credentials belong into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
}
