import { z } from "zod";
import type { Problem } from "../../core/base/given-file.ts";
import { isRouteSetting } from "../../core/base/settings.ts";
import { ALERT_KINDS, DEFAULT_ROUTE, ROUTE_TYPES, type Route, SEVERITIES } from "./alert-route.ts";

const listOf = <T extends z.ZodType>(entry: T) => z.array(entry, "is not a list such as [a, b]");
const oneOf = <const T extends readonly string[]>(words: T) =>
  z.enum(words, `is not one of ${words.join(", ")}`);
const text = z
  .string({ error: ({ input }) => (input === undefined ? "is missing" : "is not a text") })
  .regex(/\S/, "is empty")
  .max(1000, "has more than 1,000 characters");
/** One address only: a name or a second address might send mail to the wrong person. */
const mailAddress = text.regex(/^[^\s<>,;:"()[\]@]+@[^\s<>,;:"()[\]@]+$/, "is not an e-mail address");

export const routeSchema = z.strictObject({
  name: text
    .regex(
      /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/,
      "is not a name of small letters, digits and - such as search-team",
    )
    .max(63, "has more than 63 characters")
    .refine((name) => name !== DEFAULT_ROUTE.name, `is the route of ${DEFAULT_ROUTE.setting}`),
  type: oneOf(ROUTE_TYPES),
  // The value may be the secret itself, so the error does not show it.
  secret: text.refine(
    isRouteSetting,
    "is not the name of a setting such as USAGE_ROUTE_SEARCH. The secret itself belongs into that setting, not into this file",
  ),
  from: mailAddress.optional(),
  to: listOf(mailAddress).min(1, "is empty").max(50, "has more than 50 addresses").optional(),
  owners: listOf(text).min(1, "is empty: leave it out to take incidents of every owner").optional(),
  kinds: listOf(oneOf(ALERT_KINDS)).min(1, "is empty: leave it out to take every kind").optional(),
  severities: listOf(oneOf(SEVERITIES)).min(1, "is empty: leave it out to take both").optional(),
});
type RawRoute = z.output<typeof routeSchema>;

export function problemsOfRoutes(routes: readonly RawRoute[]): Problem[] {
  return routes.flatMap((route, at) => {
    const problems: Problem[] = [];
    const add = (key: string, why: string) => problems.push({ path: ["routes", at, key], why });
    const first = routes.findIndex(({ name }) => name === route.name);
    if (first < at) add("name", `"${route.name}" is the name of two routes`);
    for (const key of ["from", "to"] as const) {
      if (route.type === "email" && route[key] === undefined) add("", `a route of type email needs "${key}"`);
      if (route.type !== "email" && route[key] !== undefined) add(key, `"${key}" is for type email`);
    }
    return problems;
  });
}

export function routeOf(route: RawRoute, line: number): Route {
  return {
    line,
    name: route.name,
    type: route.type,
    setting: route.secret,
    sender: route.from ?? null,
    recipients: route.to ?? [],
    owners: route.owners ?? null,
    kinds: route.kinds ?? null,
    severities: route.severities ?? null,
  };
}
