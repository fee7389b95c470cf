import { z } from "zod";

/** Words a requirement so that it follows the value's name: the validator's own messages are for programmers. */
z.config({ localeError: (issue) => describe(issue as z.core.$ZodRawIssue) });

const TYPES: Readonly<Record<string, string>> = {
  string: "a text",
  int: "a whole number",
  number: "a number",
  boolean: "true or false",
  array: "an array",
  object: "an object",
  record: "an object",
};

function describe(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.input === undefined
        ? "is missing"
        : `must be ${TYPES[issue.expected] ?? `of type ${issue.expected}`}`;
    case "too_small":
      return `must ${bound(issue.origin, issue.minimum, issue.inclusive === false ? "above" : "or more")}`;
    case "too_big":
      return `must ${bound(issue.origin, issue.maximum, issue.inclusive === false ? "below" : "or less")}`;
    case "invalid_value":
      return `must be ${issue.values.map(String).join(" or ")}`;
    case "unrecognized_keys":
      return `must not hold ${issue.keys.join(", ")}`;
    case "invalid_format":
      return `is not a valid ${issue.format}`;
    default:
      return "has a form that is not known";
  }
}

function bound(origin: string, limit: number | bigint, how: string): string {
  const amount = how.startsWith("or") ? `${limit} ${how}` : `${how} ${limit}`;
  if (origin === "string")
    return limit === 1 ? "not be empty" : `have ${amount.replace(" or", " characters or")}`;
  if (origin === "array") return limit === 1 ? "not be empty" : `have ${amount.replace(" or", " items or")}`;
  return `be ${amount}`;
}
