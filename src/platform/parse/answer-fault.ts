/**
 * What is wrong with the body of an answer, said by the readers that know nothing of HTTP (JSON, CSV, UTF-8). The
 * border to HTTP turns it into a `PlatformError` with method, URL and status.
 */

interface FaultFacts {
  /** `answer_cut`: the body ended early, asking again may help. `answer_invalid`: it is not what the API answers. */
  readonly code: "answer_cut" | "answer_invalid";
  /** Starts in lower case and follows the request's name: "record 3: ...". */
  readonly message: string;
  readonly next: string;
  /** Where one record or row is to blame: `usage.3.traces`, `line 7.Traces`. Absent where the whole body is. */
  readonly location?: string;
}

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

/** The body stopped before its proof of being whole. */
export function cutFault(message: string): AnswerFault {
  return new AnswerFault({
    code: "answer_cut",
    message,
    next: "It is asked again. If every attempt is cut, look for a proxy with a size or time limit in between.",
  });
}

/** The body is whole or goes on, but is no answer of this endpoint. */
export function foreignFault(message: string): AnswerFault {
  return new AnswerFault({
    code: "answer_invalid",
    message,
    next: "Check that USAGE_BASE_URL is the address of the platform's API (not of its web pages or of a proxy's).",
  });
}

/** One record or row does not hold what platform-api.md says. */
export function recordFault(message: string, location: string): AnswerFault {
  return new AnswerFault({
    code: "answer_invalid",
    message,
    location,
    next: "Nothing of this answer was stored. A narrower range or a single workspace leaves the rest usable.",
  });
}
