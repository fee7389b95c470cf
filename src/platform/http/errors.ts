import { PlatformError } from "../../errors.ts";
import type { AnswerFault } from "../parse/answer-fault.ts";
import { type Redact, withoutSecret } from "./redact.ts";
import { fromRetryAfter } from "./retry-after.ts";

/** What every error of one request says of it. */
export interface RequestContext {
  readonly method: "GET" | "POST" | "PATCH";
  /** Without credentials, with the key hidden. */
  readonly url: string;
  readonly redact: Redact;
  /** The variable that holds the base URL, for the next step. */
  readonly variable: string;
}

const MAX_EXCERPT = 300;
const RETRYABLE_4XX = new Set([408, 425, 429]);
const TIMEOUTS = new Set([
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT",
  "ETIMEDOUT",
]);

interface ErrorAnswer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  /** Beginning of the body, decoded. */
  readonly body: string;
  readonly now: number;
}

/**
 * The error of an answer whose status is not 200. Worth trying again: 408, 425, 429 and 5xx (platform-facts.md,
 * Requests); nothing else.
 */
export function statusError(answer: ErrorAnswer, context: RequestContext): PlatformError {
  const { status } = answer;
  const retryAfterMs = fromRetryAfter(answer.retryAfter, answer.now);
  const excerpt = excerptOf(answer.body, context.redact);
  return new PlatformError({
    code: codeOfStatus(status),
    message: `${context.method} ${context.url} answered ${status}${excerpt === "" ? " with an empty body" : ": "}${excerpt}`,
    next: nextOfStatus(status, context),
    retryable: RETRYABLE_4XX.has(status) || status >= 500,
    method: context.method,
    url: context.url,
    status,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    locations: status === 422 ? locationsOf(context.redact(answer.body)) : [],
  });
}

function codeOfStatus(status: number): string {
  if (status === 401) return "unauthorized";
  if (status === 403) return "forbidden";
  if (status === 429) return "rate_limited";
  if (status >= 500) return "server_error";
  return status >= 400 ? "request_refused" : "answer_invalid";
}

/** Of what changes something, nothing is tried again by itself. */
const NOT_AGAIN = "It is not sent again by itself: see what became of it first.";

function nextOfStatus(status: number, { variable, method }: RequestContext): string {
  const isBilling = variable === "USAGE_BASE_URL";
  switch (status) {
    case 401:
      return "Set USAGE_API_KEY to a key that is valid on this host.";
    case 403:
      return [
        `Check that ${variable} is the host of the key's own region (the wrong region's host is the usual cause),`,
        isBilling
          ? "and that the key has the organization:read permission."
          : "and that the key may do this.",
      ].join(" ");
    case 404:
      if (!isBilling) return `Check the name or id; if they are right, the path of ${variable}.`;
      return `Check the path of ${variable} (self-hosted: with its prefix), and that granular usage is enabled on this server.`;
    case 414:
    case 431:
      return "Ask for fewer workspaces in one request.";
    case 409:
      return "Nothing was changed. Read the answer above: something else is in the way.";
    case 429:
      if (method !== "GET") return "Nothing was done. Wait, then send it again.";
      return "It is asked again after the wait; lower USAGE_RATE_LIMIT if it stays.";
    default:
      if (status >= 500 && method !== "GET") return NOT_AGAIN;
      if (status >= 500)
        return "It is asked again; if it stays, see the platform's status page or the server's log.";
      if (RETRYABLE_4XX.has(status)) return "It is asked again.";
      return "Read the answer above: the request is not asked again as it stands.";
  }
}

/**
 * The error of a request that got no answer, or no whole one. `phase` tells whether the head of the answer had come:
 * what breaks later is `answer_cut`. Always worth trying again.
 */
export function transportError(
  error: unknown,
  phase: "head" | "body",
  context: RequestContext,
): PlatformError {
  const cause = withoutSecret(error, context.redact);
  const code = String((cause as { code?: unknown }).code ?? cause.name);
  const reason = cause.message === "" ? code : `${cause.message} (${code})`;
  const facts = { method: context.method, url: context.url, retryable: true, cause };
  const request = `${context.method} ${context.url}`;
  const isGet = context.method === "GET";
  if (TIMEOUTS.has(code)) {
    return new PlatformError({
      ...facts,
      code: "timeout",
      message: `${request} timed out: ${reason}`,
      next: isGet
        ? "It is asked again. If it stays, ask for a narrower range or fewer workspaces."
        : NOT_AGAIN,
    });
  }
  if (phase === "body") {
    return new PlatformError({
      ...facts,
      code: "answer_cut",
      message: `${request}: the answer ended before its announced end: ${reason}`,
      next: isGet ? CUT_AGAIN : NOT_AGAIN,
    });
  }
  return new PlatformError({
    ...facts,
    code: "network",
    message: `${request} got no answer: ${reason}`,
    next: nextOfNetwork(code, context.variable),
  });
}

function nextOfNetwork(code: string, variable: string): string {
  // undici's parser errors come with and without a code, so the name counts as well.
  if (code.startsWith("HPE_") || code === "HTTPParserError")
    return `Check ${variable}: what listens there does not speak HTTP.`;
  if (/CERT|TLS|SSL|VERIFY/.test(code)) {
    return "Check the server's certificate; for a private authority set NODE_EXTRA_CA_CERTS to its file.";
  }
  return `Check host and port of ${variable}, and the way there (DNS, firewall, proxy).`;
}

const CUT_AGAIN =
  "It is asked again. If every attempt is cut, look for a proxy with a size or time limit in between.";

/** The error of a body that came, but is cut or no answer of this endpoint. */
export function faultError(fault: AnswerFault, status: number, context: RequestContext): PlatformError {
  return new PlatformError({
    code: fault.code,
    message: context.redact(`${context.method} ${context.url}: ${fault.message}`),
    next: fault.next.replace("USAGE_BASE_URL", context.variable),
    retryable: fault.code === "answer_cut",
    method: context.method,
    url: context.url,
    status,
    locations: fault.location === undefined ? [] : [fault.location],
  });
}

/** One line, at most 300 characters; hidden before it is cut, so that no half of the key is left at the end. */
function excerptOf(body: string, redact: Redact): string {
  const line = redact(body).replace(/\s+/g, " ").trim();
  return line.length > MAX_EXCERPT ? `${line.slice(0, MAX_EXCERPT - 3).toWellFormed()}...` : line;
}

/** `detail[].loc` of an HTTPValidationError (platform-api.md), joined with dots, in lower case; [] for any other body. */
function locationsOf(body: string): string[] {
  let detail: unknown;
  try {
    detail = (JSON.parse(body) as { detail?: unknown } | null)?.detail;
  } catch {
    return [];
  }
  if (!Array.isArray(detail)) return [];
  return detail
    .map((one: { loc?: unknown } | null) => one?.loc)
    .filter((loc) => Array.isArray(loc))
    .map((loc) => loc.map(String).join(".").toLowerCase());
}
