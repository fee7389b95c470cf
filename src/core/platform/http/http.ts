import { type Clock, describeDuration, systemClock } from "../../base/clock.ts";
import { type Connections, openConnections } from "../../base/dispatcher.ts";
import { PlatformError, UsageError } from "../../base/errors.ts";
import { Deadline, ResponseBody } from "./body.ts";
import { type RequestContext, statusError, transportError } from "./errors.ts";
import { createRedactor, hideTexts, type Redact } from "./redact.ts";

/** A secret that may change: each request carries its current value. */
interface Revealed {
  reveal(): string;
}

export interface PlatformHttpOptions {
  /** `http` or `https`; may have a path prefix (self-hosted), no credentials, query or fragment. */
  readonly baseUrl: string;
  readonly apiKey: string | Revealed;
  readonly organizationId?: string | undefined;
  readonly workspaceId?: string | undefined;
  readonly bearerToken?: string | Revealed | undefined;
  /** In ms. `headersMs`: until the head; `bodyMs`: between two pieces of the body; `graceMs`: until the least rate applies. */
  readonly timeouts?: Partial<typeof TIMEOUTS>;
  /** Largest response in bytes, as received and decoded. Default 256 MiB. */
  readonly responseLimit?: number | undefined;
  /** Open sockets; further requests wait for one. Default 8. */
  readonly connections?: number;
  /** The variable that holds `baseUrl`, for errors. Default `USAGE_BASE_URL`. */
  readonly variable?: string;
  readonly onResponse?: (status: number | undefined) => void;
  /** For deadlines and `Retry-After` dates. Default: the system's. */
  readonly clock?: Partial<Clock>;
}

export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface GetRequest extends RequestOptions {
  readonly path: string;
  readonly query?: URLSearchParams;
  readonly accept?: string;
  /** Replaces the client's limits, ms: until the head, between two pieces of the body, and the body's grace. */
  readonly headersMs?: number | undefined;
  /** Accepts 202 and 204, which have no body. */
  readonly mayBeEmpty?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  readonly withBearer?: boolean;
  readonly workspaceId?: string;
}

export interface SendRequest extends GetRequest {
  readonly method: "POST" | "PATCH";
  readonly body: unknown;
  /** Values hidden in errors, because a refusal may repeat them. Default: the body. */
  readonly secrets?: unknown;
  /** Tells a person what may have happened if no response comes, and how to see it. */
  readonly effect: string;
}

export interface PlatformResponse {
  readonly body: ResponseBody;
  readonly context: RequestContext;
}

const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const SENT_WELL = new Set([200, 201, 202, 204]);
/** Bytes read of a refusal: enough for any 422. */
const MAX_ERROR_BODY = 65_536;
/** The status is known already, so the body of a refusal may not take long. */
const ERROR_BODY_MS = 10_000;

const TIMEOUTS = { headersMs: 120_000, bodyMs: 60_000, connectMs: 10_000, graceMs: 120_000 };
const RESPONSE_LIMIT = 268_435_456;
const EVENT_STREAM = "text/event-stream";

type Method = "GET" | SendRequest["method"];

/**
 * Never retries, because every attempt needs its own fetch number (rule 5 of docs/rules.md). Uses HTTP/1.1 only, whose framing
 * `ResponseBody` proves.
 */
export class PlatformHttp {
  readonly #base: URL;
  readonly #prefix: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #apiKey: () => string;
  readonly #bearerToken: () => string | undefined;
  readonly #redact: Redact;
  /** Redactors of every secret sent so far: a response may repeat an earlier one. */
  readonly #redactors = new Map<string, Redact>();
  readonly #variable: string;
  readonly #clock: Clock;
  readonly #timeouts: typeof TIMEOUTS;
  readonly #responseLimit: number;
  readonly #connections: Connections;
  readonly #onResponse: (status: number | undefined) => void;

  constructor(options: PlatformHttpOptions) {
    const { apiKey, organizationId, workspaceId, bearerToken } = options;
    this.#variable = options.variable ?? "USAGE_BASE_URL";
    this.#base = parseBaseUrl(options.baseUrl, this.#variable);
    this.#prefix = this.#base.pathname.replace(/\/+$/, "");
    this.#apiKey = () => this.#noted(validKey(reveal(apiKey)));
    this.#bearerToken = () => (bearerToken === undefined ? undefined : this.#noted(reveal(bearerToken)));
    this.#redact = (text) => [...this.#redactors.values()].reduce((shown, hide) => hide(shown), text);
    this.#apiKey();
    this.#bearerToken();
    this.#clock = { ...systemClock, ...options.clock };
    this.#timeouts = { ...TIMEOUTS, ...options.timeouts };
    this.#responseLimit = options.responseLimit ?? RESPONSE_LIMIT;
    this.#onResponse = options.onResponse ?? (() => {});
    this.#headers = {
      "accept-encoding": "gzip",
      "user-agent": "usage-etl",
      ...(organizationId === undefined ? {} : { "x-organization-id": organizationId }),
      ...(workspaceId === undefined ? {} : { "x-tenant-id": workspaceId }),
    };
    this.#connections = openConnections(this.#base, {
      connections: options.connections ?? 8,
      connectMs: this.#timeouts.connectMs,
    });
    // The error page of a proxy may repeat its login.
    const { password = "" } = this.#connections.proxy?.url ?? {};
    if (password !== "")
      this.#redactors.set(password, (text) => hideTexts(text, decodeURIComponent(password)));
  }

  /** Returns the response with status 200, its body unread. Throws `PlatformError` or the signal's reason. */
  get(request: GetRequest): Promise<PlatformResponse> {
    return this.#exchange(request, "GET");
  }

  /**
   * Sends a change and accepts status 200, 201, 202 or 204. A request that fails without a status may have had its effect,
   * so sending it again may do it twice.
   */
  send(request: SendRequest): Promise<PlatformResponse> {
    return this.#exchange(request, request.method);
  }

  async #exchange(request: GetRequest | SendRequest, method: Method): Promise<PlatformResponse> {
    const query = request.query?.toString() ?? "";
    const target = new URL(
      this.#prefix + request.path + (query === "" ? "" : `?${query}`),
      this.#base.origin,
    );
    const context = this.#contextOf(target, request);
    const { status, location, retryAfter, date, body } = await this.#send(target, request, context);
    const isEmptyWell = method !== "GET" || request.mayBeEmpty === true;
    if (status === 200 || (isEmptyWell && SENT_WELL.has(status))) return { body, context };
    if (REDIRECTS.has(status)) {
      body.discard();
      throw this.#redirectRefused(status, location, context);
    }
    throw statusError(
      { status, retryAfter, date, body: await beginningOf(body), now: this.#clock.now() },
      context,
    );
  }

  /** Ends every connection at once; a running request fails with `network` or `response_cut`. */
  async close(): Promise<void> {
    await this.#connections.dispatcher.destroy();
  }

  async #send(target: URL, request: GetRequest | SendRequest, context: RequestContext) {
    const { accept = "application/json", signal, headersMs = this.#timeouts.headersMs } = request;
    signal?.throwIfAborted();
    const bearer = request.withBearer === true ? this.#bearerToken() : undefined;
    const secrets = {
      "x-api-key": this.#apiKey(),
      ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
    };
    const deadline = new Deadline(this.#clock, signal);
    const headMs = this.#timeouts.connectMs + headersMs;
    deadline.set(
      () => headMs,
      () => `no response began within ${describeDuration(headMs)}`,
    );
    try {
      const response = await this.#connections.dispatcher.request({
        origin: target.origin,
        method: context.method,
        path: target.pathname + target.search,
        headers: {
          ...this.#headers,
          ...request.headers,
          ...secrets,
          accept,
          ...("body" in request ? { "content-type": "application/json" } : {}),
          ...(request.workspaceId === undefined ? {} : { "x-tenant-id": request.workspaceId }),
        },
        ...("body" in request ? { body: JSON.stringify(request.body) } : {}),
        headersTimeout: headersMs,
        bodyTimeout: request.headersMs ?? this.#timeouts.bodyMs,
        signal: deadline.signal,
      });
      const { statusCode: status, headers, body: stream } = response;
      this.#onResponse(status);
      return {
        status,
        location: single(headers.location),
        retryAfter: single(headers["retry-after"]),
        date: single(headers.date),
        body: new ResponseBody({
          stream,
          status,
          headers,
          context,
          signal,
          deadline,
          now: this.#clock.now,
          // Streams of events have no least rate; their reader sets a limit.
          graceMs:
            accept === EVENT_STREAM
              ? Number.POSITIVE_INFINITY
              : Math.max(this.#timeouts.graceMs, request.headersMs ?? 0),
          limit: this.#responseLimit,
        }),
      };
    } catch (error) {
      deadline.end();
      if (signal?.aborted) throw signal.reason;
      this.#onResponse(undefined);
      throw transportError(error, "head", context);
    }
  }

  #noted(secret: string): string {
    if (!this.#redactors.has(secret)) this.#redactors.set(secret, createRedactor(secret));
    return secret;
  }

  /** Redirects are refused: the key is only for the configured host. */
  #redirectRefused(status: number, location: string | undefined, context: RequestContext): PlatformError {
    const { method, url, effect } = context;
    const to = location === undefined ? null : URL.parse(location, this.#base.href);
    const where =
      to === null ? "a redirect that names no address" : `a redirect to ${to.protocol}//${to.host}`;
    const next = `Set ${this.#variable} to the address that responds without a redirect, if that is the platform too.`;
    return new PlatformError({
      code: "redirect_refused",
      message: `${method} ${url} responded with ${status}: ${this.#redact(where)}, not followed`,
      next: [next, effect].join(" ").trim(),
      method,
      url,
      status,
    });
  }

  #contextOf(target: URL, request: GetRequest | SendRequest): RequestContext {
    const url = this.#redact(target.origin + target.pathname + target.search);
    const about = { url, variable: this.#variable, proxy: this.#connections.proxy };
    if (!("body" in request)) return { ...about, method: "GET", redact: this.#redact };
    const { method, body, secrets = body, effect } = request;
    const redact: Redact = (text) => hideTexts(this.#redact(text), secrets);
    return { ...about, method, redact, effect };
  }
}

function reveal(secret: string | Revealed): string {
  return typeof secret === "string" ? secret : secret.reveal();
}

function validKey(key: string): string {
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new UsageError({
    code: "key_invalid",
    message: "The API key is empty, or contains a space, a line end or a character that is not ASCII.",
    next: "Set USAGE_API_KEY, or the file that USAGE_API_KEY_FILE names, to the key alone.",
  });
}

async function beginningOf(body: ResponseBody): Promise<string> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of body.chunks({ graceMs: ERROR_BODY_MS, limit: 2 * MAX_ERROR_BODY })) {
      chunks.push(chunk);
      if (body.bytes >= MAX_ERROR_BODY) break;
    }
  } catch (error) {
    // A refusal is reported even if its text was cut.
    if (!(error instanceof PlatformError)) throw error;
  }
  return Buffer.concat(chunks).subarray(0, MAX_ERROR_BODY).toString("utf8");
}

function single(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

function parseBaseUrl(text: string, variable: string): URL {
  const url = URL.parse(text);
  // The text may hold a password, so the message omits it.
  const refuse = (wrong: string): never => {
    throw new UsageError({
      code: "base_url_invalid",
      message: `${variable} ${wrong}.`,
      next: `Set ${variable} to the address of the platform, such as https://api.example.com or https://example.com/prefix.`,
    });
  };
  if (url === null || !/^https?:$/.test(url.protocol)) return refuse("is not an http or https address");
  if (url.username !== "" || url.password !== "") return refuse("has a user name or password");
  return url.search !== "" || url.hash !== "" ? refuse("has a query or fragment") : url;
}
