import { describeValue } from "./wire-values.ts";

interface FaultFacts {
  /**
   * `answer_cut`: the body ended early, a retry may help. `answer_too_large`: it was not read to its end. `answer_invalid`:
   * it is not a response of the API.
   */
  readonly code: "answer_cut" | "answer_too_large" | "answer_invalid";
  /** Begins in lower case and follows the request's name: "record 3: ...". */
  readonly message: string;
  readonly next: string;
  /** The wrong record or row: `usage.3.traces`, `line 7.Traces`. Absent if the whole body is wrong. */
  readonly location?: string;
}

/** A problem of a response's body, from readers that know nothing of HTTP. `faultError` adds method, URL and status. */
export class AnswerFault extends Error {
  readonly code: FaultFacts["code"];
  readonly next: string;
  readonly location: string | undefined;

  constructor(facts: FaultFacts) {
    super(facts.message);
    this.name = "AnswerFault";
    this.code = facts.code;
    this.next = facts.next;
    this.location = facts.location;
  }
}

export function cutFault(message: string): AnswerFault {
  return new AnswerFault({
    code: "answer_cut",
    message,
    next: "The request is retried. If every attempt is cut, look for a proxy with a size or time limit in between.",
  });
}

/** `limit` is in bytes. `isSetting`: a setting can raise it. */
export function tooLargeFault(limit: number, isSetting: boolean): AnswerFault {
  return new AnswerFault({
    code: "answer_too_large",
    message: `the answer is larger than ${limit.toLocaleString("en-US")} bytes and was not read to its end`,
    next: isSetting
      ? "A server that never ends its answer is at fault. If usage is really that large, raise USAGE_ANSWER_LIMIT."
      : "Check that USAGE_BASE_URL is the address of the platform's API, not of its web pages or of a proxy.",
  });
}

export function tooManyPagesFault(limit: number): AnswerFault {
  return new AnswerFault({
    code: "answer_too_large",
    message: `the answer has more than ${limit.toLocaleString("en-US")} pages and was not read to its end`,
    next: "A server whose pages never end is at fault. Request a narrower range to see which days it answers.",
  });
}

export function foreignFault(message: string): AnswerFault {
  return new AnswerFault({
    code: "answer_invalid",
    message,
    next: "Check that USAGE_BASE_URL is the address of the platform's API, not of its web pages or of a proxy.",
  });
}

/** `what` names the thing in the message; `place` is its path in the response. */
export function refuserOf(wire: Readonly<Record<string, unknown>>, what: string, place: string) {
  return (field: string, why: string): never => {
    throw recordFault(`${what}: ${field} is ${describeValue(wire[field])}, ${why}`, `${place}.${field}`);
  };
}

export function recordFault(message: string, location: string): AnswerFault {
  return new AnswerFault({
    code: "answer_invalid",
    message,
    location,
    next: "Nothing of this answer was stored. Request a narrower range or a single workspace to load the rest.",
  });
}
