import { STATUS_CODES } from "node:http";
import type { z } from "zod";

/** docs/platform.md, Requests. */

interface ValidationProblem {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
}

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

/** The key is missing or wrong (seen). */
export const invalidToken = (): Refusal => new Refusal(401, { detail: "Invalid token" });

/** Seen. */
export const forbidden = (): Refusal => new Refusal(403, { error: "Forbidden" });

/** A key of the organization without a workspace (seen). */
export const workspaceRequired = (): Refusal =>
  new Refusal(403, { error: "org_scoped_key_requires_workspace" });

/** HTTPValidationError. For billing it is seen in client code. */
export const invalid = (problems: readonly ValidationProblem[]): Refusal =>
  new Refusal(422, { detail: problems });

/** FastAPI responds like this (our guess). */
export const notJson = (at: number): Refusal =>
  invalid([{ loc: ["body", at], msg: "JSON decode error", type: "json_invalid" }]);

/** Our guess. */
export const tooLarge = (limit: number): Refusal =>
  new Refusal(413, { detail: `The body is larger than ${limit} bytes` });

/** 400 has a sentence (our guess). */
export const badRequest = (sentence: string): Refusal => new Refusal(400, { detail: sentence });

/** Refused by name, so that no test passes by accident (our own). */
export const noRoute = (method: string, path: string): Refusal =>
  new Refusal(404, { detail: `stand-in: no route ${method} ${path}` });

/** Problem details (RFC 7807), and 400 for a wrong parameter: documented for sandbox costs. The words are our guess. */
export function asProblem({ status: given, body }: Refusal): Refusal {
  const { detail, error } = body as { detail?: string | readonly ValidationProblem[]; error?: string };
  const status = given === 422 ? 400 : given;
  const text = Array.isArray(detail)
    ? detail.map(({ loc, msg }: ValidationProblem) => `${loc.join(".")}: ${msg}`).join("; ")
    : (detail ?? error);
  return new Refusal(status, { type: "about:blank", title: STATUS_CODES[status], status, detail: text });
}

/** Refuses with 422 and every problem: loc, msg and type (docs/platform.md, Requests). Words of msg and type: our guess. */
export function checked<T>(schema: z.ZodType<T>, given: unknown, where = "body"): T {
  const { success, data, error } = schema.safeParse(given);
  if (success) return data;
  throw invalid(
    error.issues.flatMap((issue) => {
      const { code, message: msg } = issue;
      const loc = [where, ...(issue.path as (string | number)[])];
      const unknown = issue.code === "unrecognized_keys" ? issue.keys : undefined;
      if (unknown === undefined) return [{ loc, msg, type: code }];
      return unknown.map((key) => ({
        loc: [...loc, key],
        msg: "Extra inputs are not permitted",
        type: code,
      }));
    }),
  );
}
