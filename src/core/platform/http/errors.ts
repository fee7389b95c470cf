import { describeDuration } from "../../base/clock.ts";
import { PlatformError } from "../../base/errors.ts";
import { parseJson } from "../../base/json.ts";
import { DateTime } from "../../base/luxon.ts";
import { type HttpProxy, proxyRefusal } from "../../base/proxy.ts";
import type { ResponseError } from "../parse/response-error.ts";
import { type Redact, withoutSecret } from "./redact.ts";

export interface RequestContext {
  readonly method: "GET" | "POST" | "PATCH";
  /** Without credentials, with the key hidden. */
  readonly url: string;
  readonly redact: Redact;
  readonly variable: string;
  readonly proxy?: HttpProxy | undefined;
  /** Says what may have happened without a response. Only requests that change something have it. */
  readonly effect?: string;
}

const CONTROL_PLANE = "USAGE_CONTROL_PLANE_URL";
const MAX_EXCERPT = 300;
const CUT = "...";
const RETRYABLE_4XX = new Set([408, 425, 429]);
const TIMEOUTS = new Set([
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT",
  "ETIMEDOUT",
]);

interface ErrorResponse {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly body: string;
  /** The response's `Date`, from the same clock as its other dates. */
  readonly date: string | undefined;
  readonly now: number;
}

export function orAbsent<T>(requested: Promise<T>): Promise<T | PlatformError> {
  return requested.catch((error: unknown) => {
    if (error instanceof PlatformError && (error.status === 404 || error.status === 405)) return error;
    throw error;
  });
}

export async function unlessAbsent<T>(requested: Promise<T>): Promise<T | undefined> {
  const found = await orAbsent(requested);
  return found instanceof PlatformError ? undefined : found;
}

export function statusError(response: ErrorResponse, context: RequestContext): PlatformError {
  const { status } = response;
  const { ms: retryAfterMs, problem } = fromRetryAfter(
    response.retryAfter,
    instantOf(response.date ?? "") ?? response.now,
  );
  const body = context.redact(response.body);
  const excerpt = excerptOf(body, context.redact);
  const words = wordsOf(body, context.redact) ?? excerpt;
  // A cut excerpt may end before the reason.
  const shown = excerpt.endsWith(CUT) ? words : excerpt;
  const said = excerpt === "" ? " with an empty body" : `: ${shown}`;
  // Within a tunnel only the platform can answer.
  const through = context.url.startsWith("http:") ? throughProxy(context) : "";
  return new PlatformError({
    code: codeOfStatus(status),
    message: `${context.method} ${context.url}${through} responded with ${status}${said}${problem === undefined ? "" : ` (${context.redact(problem)})`}`,
    next: nextOfStatus(response, context),
    retryable: RETRYABLE_4XX.has(status) || status >= 500,
    method: context.method,
    url: context.url,
    status,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    isRetryAfterOdd: problem !== undefined,
    reason: reasonOf(detailOf(response.body)),
    words,
    locations: status === 422 ? locationsOf(detailOf(body)) : [],
  });
}

function codeOfStatus(status: number): string {
  if (status === 401) return "unauthorized";
  if (status === 403) return "forbidden";
  if (status === 429) return "rate_limited";
  if (status >= 500) return "server_error";
  return status >= 400 ? "request_refused" : "response_invalid";
}

const TIMEOUT_AGAIN =
  "The request is retried. If this continues, request a narrower range or fewer workspaces.";
const CUT_AGAIN =
  "The request is retried. If every attempt is cut, look for a proxy with a size or time limit in between.";
/** For requests other than usage, which alone is retried automatically. */
const LATER = "Run the command again later.";
/** With these codes no request was sent. */
const NOT_SENT =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$|CERT|TLS|SSL|VERIFY/;

/** A request that changes something is never sent again. */
function nextOfFault({ variable, effect }: RequestContext, whereRetried: string): string {
  if (effect !== undefined) return `It is not sent again. ${effect}`;
  return variable === "USAGE_BASE_URL" ? whereRetried : LATER;
}

function nextOfStatus({ status, body }: ErrorResponse, context: RequestContext): string {
  const { variable, method } = context;
  const isBilling = variable === "USAGE_BASE_URL";
  switch (status) {
    case 401:
      return "Set USAGE_API_KEY to a key that is valid on this host.";
    case 403:
      // An organization's key has no workspace of its own.
      if (variable === CONTROL_PLANE && body.includes("org_scoped_key_requires_workspace"))
        return "The key belongs to the organization. Set USAGE_WORKSPACE_ID to the workspace of the request.";
      return [
        `Check that ${variable} is the host of the key's own region (the usual cause is the wrong region's host),`,
        rightsOf(variable),
      ].join(" ");
    case 404:
      if (!isBilling) return `Check the name or id. If it is right, check the path of ${variable}.`;
      return `Check the path of ${variable} (self-hosted: with its prefix), and that granular usage is enabled on this server.`;
    case 414:
    case 431:
      return "Request fewer workspaces at once.";
    case 409:
      return "Nothing was changed. Read the response above: it names the conflict.";
    case 429:
      if (method !== "GET" || !isBilling) return "Nothing was done. Wait, then send it again.";
      return "The request is retried after the wait. If this continues, lower USAGE_RATE_LIMIT.";
    default:
      if (status < 500 && !RETRYABLE_4XX.has(status)) {
        // Only a 4xx says that nothing was done.
        const effect = status < 400 ? context.effect : undefined;
        return ["Read the response above. The request is not retried.", effect].join(" ").trim();
      }
      return nextOfFault(
        context,
        status < 500
          ? "The request is retried."
          : "The request is retried. If this continues, see the platform's status page or the server's log.",
      );
  }
}

function rightsOf(variable: string): string {
  if (variable === "USAGE_BASE_URL") return "and that the key has the organization:read permission.";
  if (variable !== CONTROL_PLANE) return "and that the key may do this.";
  return "that the key may do this, and USAGE_WORKSPACE_ID if it is set.";
}

/**
 * The error of a request without a whole response; always retryable. `phase`: `body` once the head has come; the error is then
 * `response_cut` or `timeout`.
 */
export function transportError(
  error: unknown,
  phase: "head" | "body",
  context: RequestContext,
): PlatformError {
  const { method, url, proxy, effect } = context;
  const cause = withoutSecret(error, context.redact);
  const causeCode = String((cause as { code?: unknown }).code ?? cause.name);
  const refusal = proxy === undefined ? undefined : proxyRefusal(error);
  const reason =
    refusal !== undefined
      ? `the proxy refuses with ${refusal}`
      : cause.message === ""
        ? causeCode
        : `${cause.message} (${causeCode})`;
  const fail = (code: string, what: string, next: string) => {
    const message = `${method} ${url}${throughProxy(context)}${what}: ${reason}`;
    return new PlatformError({ code, message, next, retryable: true, method, url, cause });
  };
  const wasSent = refusal === undefined && !NOT_SENT.test(causeCode);
  const unreached = nextOfNetwork(causeCode, context);
  if (TIMEOUTS.has(causeCode)) {
    const checkProxy = proxy === undefined ? "" : ` ${nextOfProxy(proxy)}`;
    return fail(
      "timeout",
      " timed out",
      wasSent ? `${nextOfFault(context, TIMEOUT_AGAIN)}${checkProxy}` : unreached,
    );
  }
  if (phase === "body") {
    return fail(
      "response_cut",
      ": the response ended before its announced end",
      nextOfFault(context, CUT_AGAIN),
    );
  }
  const next = wasSent && effect !== undefined ? `${unreached} ${nextOfFault(context, "")}` : unreached;
  return fail("network", " got no response", next);
}

function throughProxy({ proxy }: RequestContext): string {
  return proxy === undefined ? "" : ` through the proxy ${proxy.shown}`;
}

function nextOfProxy({ variable }: HttpProxy): string {
  return `Check ${variable}, its login, and whether the proxy may reach the host. NO_PROXY names hosts that need no proxy.`;
}

function nextOfNetwork(code: string, { variable, proxy }: RequestContext): string {
  // Some of undici's parser errors have no code, so the name counts too.
  if (code.startsWith("HPE_") || code === "HTTPParserError")
    return `Check ${variable}: the server there does not speak HTTP.`;
  if (/CERT|TLS|SSL|VERIFY/.test(code)) {
    return "Check the server's certificate. For a private authority, set NODE_EXTRA_CA_CERTS to its file.";
  }
  if (proxy !== undefined) return nextOfProxy(proxy);
  return `Check host and port of ${variable}, and the network (DNS, firewall, proxy).`;
}

export function platformErrorOf(
  fault: ResponseError,
  status: number,
  context: RequestContext,
): PlatformError {
  const next = fault.next.replace("USAGE_BASE_URL", context.variable);
  const isCut = fault.code === "response_cut";
  return new PlatformError({
    code: fault.code,
    message: context.redact(`${context.method} ${context.url}: ${fault.message}`),
    next: isCut ? nextOfFault(context, next) : [next, context.effect].join(" ").trim(),
    retryable: isCut,
    method: context.method,
    url: context.url,
    status,
    locations: fault.location === undefined ? [] : [fault.location],
  });
}

/** One line of at most 300 characters, redacted before it is shortened. */
export function excerptOf(body: string, redact: Redact): string {
  const line = redact(body).replace(/\s+/g, " ").trim();
  return line.length > MAX_EXCERPT ? `${line.slice(0, MAX_EXCERPT - CUT.length).toWellFormed()}${CUT}` : line;
}

/** `title` is a field of problem details (RFC 7807). Empty if the body is not such JSON. */
function problemOf(body: string): { title?: unknown; detail?: unknown } {
  try {
    return (parseJson(body) as object | null) ?? {};
  } catch {
    return {};
  }
}

function detailOf(body: string): unknown {
  return problemOf(body).detail;
}

function reasonOf(detail: unknown): string | undefined {
  const { error } = (detail ?? {}) as { error?: unknown };
  return typeof error === "string" ? error : undefined;
}

/** Returns one line. Undefined unless the body has a title, or a `detail` that is a text or a 422's list. */
function wordsOf(body: string, redact: Redact): string | undefined {
  const { title, detail } = problemOf(body);
  const said = Array.isArray(detail)
    ? detail
        .map((one: { loc?: unknown; msg?: unknown } | null) =>
          [[one?.loc].flat().filter(isWord).join("."), one?.msg].filter(isWord).join(": "),
        )
        .join("; ")
    : detail;
  const words = [title, said].filter(isWord).join(": ");
  return words === "" ? undefined : excerptOf(words, redact);
}

function isWord(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function locationsOf(detail: unknown): string[] {
  if (!Array.isArray(detail)) return [];
  return detail
    .map((one: { loc?: unknown } | null) => one?.loc)
    .filter((loc) => Array.isArray(loc))
    .map((loc) => loc.map(String).join(".").toLowerCase());
}

/** Longest wait before an attempt, whatever a server requests. */
export const LONGEST_WAIT_MS = 300_000;

export interface RetryAfter {
  /** Milliseconds to wait; undefined if the header does not say. A past date is 0. */
  readonly ms?: number;
  readonly problem?: string;
}

/** Epoch ms of an HTTP date; undefined for other text. */
function instantOf(text: string): number | undefined {
  const ms = DateTime.fromHTTP(text.trim(), { zone: "utc" }).toMillis();
  return Number.isNaN(ms) ? undefined : ms;
}

/** `Retry-After`: whole seconds or an HTTP date (RFC 9110, 10.2.3), at most five minutes. */
export function fromRetryAfter(header: string | undefined, now: number): RetryAfter {
  const text = header?.trim() ?? "";
  if (text === "") return {};
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Math.max((instantOf(text) ?? Number.NaN) - now, 0);
  const shown = JSON.stringify(text.slice(0, 40));
  if (Number.isNaN(ms)) return { problem: `Its Retry-After, ${shown}, cannot be read.` };
  if (ms <= LONGEST_WAIT_MS) return { ms };
  const bound = describeDuration(LONGEST_WAIT_MS);
  return {
    ms: LONGEST_WAIT_MS,
    problem: `Its Retry-After, ${shown}, is longer than ${bound}, the longest wait.`,
  };
}
