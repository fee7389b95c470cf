interface ErrorFacts {
  /** Stable, snake_case: scripts, alerts and docs/errors.md refer to it. */
  readonly code: string;
  /** Names the thing (method and URL, file and line, flag and value). Never holds a secret. */
  readonly message: string;
  /** A command to run or a variable to set. */
  readonly next: string;
  readonly retryable?: boolean;
  readonly cause?: unknown;
}

export class EtlError extends Error {
  readonly code: string;
  readonly next: string;
  readonly retryable: boolean;

  constructor(facts: ErrorFacts) {
    super(facts.message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = new.target.name;
    this.code = facts.code;
    this.next = facts.next;
    this.retryable = facts.retryable ?? false;
  }
}

/** A wrong flag, variable or file. Exit code 2. */
export class UsageError extends EtlError {}

/** A server (Postgres, Redis, the platform) does not respond. Exit code 6. */
export class UnreachableError extends EtlError {}

/** Somebody ended the command. Exit code 130. */
export class InterruptedError extends EtlError {}

/** Something did not happen in time. Exit code 3. */
export class DeadlineError extends EtlError {}

interface PlatformErrorFacts extends ErrorFacts {
  readonly method: string;
  /** Without credentials. */
  readonly url: string;
  readonly status?: number;
  readonly retryAfterMs?: number;
  readonly isRetryAfterOdd?: boolean;
  /** `detail.error` of the body, such as `NotFound` or `Conflict`. */
  readonly reason?: string | undefined;
  /** The platform's words about a refusal; "" without any. */
  readonly words?: string;
  /** `detail[].loc` of a 422, joined with dots, in lower case: `query.end_time`. */
  readonly locations?: readonly string[];
}

/**
 * The platform responded with an error, or its response is incomplete or invalid. Codes: `unauthorized` (401), `forbidden`
 * (403), `rate_limited` (429), `request_refused` (other 4xx), `server_error` (5xx), `network` (no response), `timeout`,
 * `response_cut` (the body ended early), `response_too_large` (the body did not end), `response_invalid` (`locations` names
 * wrong records or rows; if empty, the body is not this endpoint's, so a smaller range would not help), `redirect_refused`,
 * `rpc_error` (an error in a JSON-RPC response), `templates_missing` (404 or 405 for all templates).
 */
export class PlatformError extends EtlError {
  readonly method: string;
  readonly url: string;
  readonly status: number | undefined;
  /** At most five minutes. */
  readonly retryAfterMs: number | undefined;
  /** True if `Retry-After` was longer than five minutes, or cannot be read. The message names it. */
  readonly isRetryAfterOdd: boolean;
  readonly reason: string | undefined;
  readonly words: string;
  readonly locations: readonly string[];

  constructor(facts: PlatformErrorFacts) {
    super(facts);
    this.method = facts.method;
    this.url = facts.url;
    this.status = facts.status;
    this.retryAfterMs = facts.retryAfterMs;
    this.isRetryAfterOdd = facts.isRetryAfterOdd ?? false;
    this.reason = facts.reason;
    this.words = facts.words ?? "";
    this.locations = facts.locations ?? [];
  }

  /** A request with fewer workspace ids may pass. */
  get isUrlTooLong(): boolean {
    return this.status === 414 || this.status === 431;
  }

  get isAboutRecords(): boolean {
    return this.code === "response_invalid" && this.locations.length > 0;
  }
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
