/**
 * The project's own errors. Each carries a stable `code` (docs/operate.md has an entry per code), the offending
 * value in its message, the next step in `next`, and whether to try again as data.
 */

interface ErrorFacts {
  /** Stable, snake_case; what a script, an alert or a runbook keys on. */
  readonly code: string;
  /** What is wrong, naming the thing (method and URL, file and line, flag and value). Never holds a secret. */
  readonly message: string;
  /** What the reader should do now: a command to run, a variable to set. */
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

/** Wrong flag, variable or file: the person at the keyboard can mend it. Exit code 2. */
export class UsageError extends EtlError {}

/** A server (Postgres, Redis, the platform) does not answer at all. Exit code 6. */
export class UnreachableError extends EtlError {}

/** Something did not come about in the time it was given. Exit code 3. */
export class DeadlineError extends EtlError {}

/** Facts of an answer of the platform that could not be used. */
interface PlatformErrorFacts extends ErrorFacts {
  readonly method: string;
  /** Without credentials. */
  readonly url: string;
  readonly status?: number;
  readonly retryAfterMs?: number;
  /** Locations named by a 422 (`detail[].loc` joined with dots), lower-case: `query.end_time`. */
  readonly locations?: readonly string[];
}

/**
 * The platform answered with an error, or with something that cannot be proved whole or valid.
 *
 * Codes: `unauthorized` (401), `forbidden` (403), `rate_limited` (429), `request_refused` (other 4xx),
 * `server_error` (5xx), `network` (no answer), `timeout`, `answer_cut` (body ended early), `answer_invalid` (a record
 * or row failed its schema, which `locations` then names; without locations the whole body is no answer of this
 * endpoint, and no part of the range would be), `redirect_refused`, `rpc_error` (an error in a JSON-RPC response).
 */
export class PlatformError extends EtlError {
  readonly method: string;
  readonly url: string;
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;
  readonly locations: readonly string[];

  constructor(facts: PlatformErrorFacts) {
    super(facts);
    this.method = facts.method;
    this.url = facts.url;
    this.status = facts.status;
    this.retryAfterMs = facts.retryAfterMs;
    this.locations = facts.locations ?? [];
  }
}
