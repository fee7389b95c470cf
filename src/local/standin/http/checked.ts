import type { z } from "zod";
import { invalid, type ValidationProblem } from "./refusal.ts";

/**
 * Parses a body, a path or a query, or refuses it with 422 and every problem: loc, msg and type (docs/platform.md,
 * Requests). The words of msg and type follow pydantic (our guess).
 */
export function checked<T>(schema: z.ZodType<T>, given: unknown, where = "body"): T {
  const { success, data, error } = schema.safeParse(given);
  if (success) return data;
  throw invalid(error.issues.flatMap((issue) => problemsOf(issue, where)));
}

function problemsOf(issue: z.core.$ZodIssue, where: string): ValidationProblem[] {
  const loc = [where, ...(issue.path as (string | number)[])];
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => ({
      loc: [...loc, key],
      msg: "Extra inputs are not permitted",
      type: "extra_forbidden",
    }));
  }
  return [{ loc, ...describe(issue) }];
}

function describe(issue: z.core.$ZodIssue): { msg: string; type: string } {
  switch (issue.code) {
    case "invalid_type":
      return issue.message.endsWith("received undefined")
        ? { msg: "Field required", type: "missing" }
        : { msg: `Input should be a valid ${issue.expected}`, type: `${issue.expected}_type` };
    case "too_big":
      return { msg: issue.message, type: `${issue.origin}_too_long` };
    case "too_small":
      return { msg: issue.message, type: "too_short" };
    case "invalid_value":
      return {
        msg: `Input should be ${issue.values.map((one) => `'${String(one)}'`).join(" or ")}`,
        type: "enum",
      };
    case "invalid_format":
      return issue.format === "uuid" || issue.format === "guid"
        ? { msg: "Input should be a valid UUID", type: "uuid_parsing" }
        : { msg: issue.message, type: "string_pattern_mismatch" };
    default:
      return { msg: issue.message, type: "value_error" };
  }
}
