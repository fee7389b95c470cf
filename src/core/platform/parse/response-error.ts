import { describeValue } from "./wire-values.ts";

interface ResponseErrorFacts {
  /**
   * `response_cut`: the body ended early, a retry may help. `response_too_large`: it was not read to its end.
   * `response_invalid`: it is not a response of the API.
   */
  readonly code: "response_cut" | "response_too_large" | "response_invalid";
  /** Begins in lower case and follows the request's name: "record 3: ...". */
  readonly message: string;
  readonly next: string;
  /** The wrong record or row: `usage.3.traces`, `line 7.Traces`. Absent if the whole body is wrong. */
  readonly location?: string;
}

/** A problem of a response's body, from readers that know nothing of HTTP. `platformErrorOf` adds method, URL and status. */
export class ResponseError extends Error {
  readonly code: ResponseErrorFacts["code"];
  readonly next: string;
  readonly location: string | undefined;

  constructor(facts: ResponseErrorFacts) {
    super(facts.message);
    this.name = "ResponseError";
    this.code = facts.code;
    this.next = facts.next;
    this.location = facts.location;
  }
}

export function cutError(message: string): ResponseError {
  return new ResponseError({
    code: "response_cut",
    message,
    next: "The request is retried. If every attempt is cut, look for a proxy with a size or time limit in between.",
  });
}

/** `limit` is in bytes. `isSetting`: a setting can raise the limit. */
export function tooLargeError(limit: number, isSetting: boolean): ResponseError {
  return new ResponseError({
    code: "response_too_large",
    message: `the response is larger than ${limit.toLocaleString("en-US")} bytes and was not read to its end`,
    next: isSetting
      ? "A server that never ends its response is at fault. If usage is really that large, raise USAGE_RESPONSE_LIMIT."
      : "Check that USAGE_BASE_URL is the address of the platform's API, not of its web pages or of a proxy.",
  });
}

export function tooManyPagesError(limit: number): ResponseError {
  return new ResponseError({
    code: "response_too_large",
    message: `the response has more than ${limit.toLocaleString("en-US")} pages and was not read to its end`,
    next: "A server whose pages never end is at fault. Request a narrower range to find the days that can be loaded.",
  });
}

/** A first page must not pass for the whole list. */
export function partError(entries: number, all: number): ResponseError {
  return new ResponseError({
    code: "response_invalid",
    message: `the list has only ${entries} of ${all} entries, by its header X-Pagination-Total`,
    next: "This version reads such a list only in one page. Report it to the people who maintain usage-etl.",
  });
}

export function foreignError(message: string): ResponseError {
  return new ResponseError({
    code: "response_invalid",
    message,
    next: "Check that USAGE_BASE_URL is the address of the platform's API, not of its web pages or of a proxy.",
  });
}

export function refuserOf(wire: Readonly<Record<string, unknown>>, what: string, place: string) {
  return (field: string, why: string): never => {
    throw recordError(`${what}: ${field} is ${describeValue(wire[field])}, ${why}`, `${place}.${field}`);
  };
}

export function recordError(message: string, location: string): ResponseError {
  return new ResponseError({
    code: "response_invalid",
    message,
    location,
    next: "Nothing of this response was stored. Request a narrower range or a single workspace to load the rest.",
  });
}
