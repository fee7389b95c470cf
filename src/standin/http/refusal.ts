/** The error shapes of the platform. Where a shape comes from is written beside it. */

export interface ValidationProblem {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
}

/** Thrown anywhere behind a route; the door sends `status` and `body` as JSON. */
export class Refusal extends Error {
  readonly status: number;
  readonly body: unknown;

  constructor(status: number, body: unknown) {
    super(`${status} ${JSON.stringify(body)}`);
    this.name = "Refusal";
    this.status = status;
    this.body = body;
  }
}

/** Seen in client code (platform-facts.md): the answer to a missing or wrong key. */
export const invalidToken = (): Refusal => new Refusal(401, { detail: "Invalid token" });

/** Seen in client code (platform-facts.md). */
export const forbidden = (): Refusal => new Refusal(403, { error: "Forbidden" });

/** HTTPValidationError (specification, Resources); that billing sends it is seen in client code. */
export const invalid = (problems: readonly ValidationProblem[]): Refusal =>
  new Refusal(422, { detail: problems });

/** As FastAPI answers, which the specification's HTTPValidationError comes from: a body that is not JSON. */
export const notJson = (at: number): Refusal =>
  invalid([{ loc: ["body", at], msg: "JSON decode error", type: "json_invalid" }]);

/** Our guess: limits are not shown in the specification. */
export const tooLarge = (limit: number): Refusal =>
  new Refusal(413, { detail: `The body is larger than ${limit} bytes` });

/** Our guess: 400 carries a sentence. */
export const badRequest = (sentence: string): Refusal => new Refusal(400, { detail: sentence });

/** Our own: an admin route was given something that does not exist. */
export const unknownThing = (kind: string, id: string): Refusal =>
  new Refusal(404, {
    detail: `stand-in: no ${kind} ${JSON.stringify(id)}; GET /__standin/organisation lists them`,
  });

/** Our own: what is not implemented is refused by name, so that a test that relies on it cannot pass by accident. */
export const noRoute = (method: string, path: string): Refusal =>
  new Refusal(404, { detail: `stand-in: no route ${method} ${path}` });
