import { z } from "zod";
import { DateTime, Duration } from "../luxon.ts";
import { parseHost, parseRedisUrl } from "../redis-server.ts";

/** What values of settings may be, with messages that say what is wrong. */

export const DAY_MS = 86_400_000;
/** Beyond it a date cannot be told, or a plan does not end. */
const LONGEST_MS = 36_525 * DAY_MS;
/** Days and instants of settings and options lie between these. */
export const FIRST_DAY = "1970-01-01";
export const LAST_DAY = "2100-01-01";

export const duration = z.string().transform((text, context) => {
  const value = Duration.fromISO(text);
  const ms = value.isValid ? value.toMillis() : Number.NaN;
  if (ms >= 0 && ms <= LONGEST_MS) return ms;
  const message =
    ms > LONGEST_MS ? "must be 100 years or less" : "is not an ISO 8601 duration such as P3D or PT15M";
  context.issues.push({ code: "custom", input: text, message });
  return z.NEVER;
});
export const day = z
  .string()
  .refine((text) => DateTime.fromFormat(text, "yyyy-MM-dd").isValid, {
    error: "is not a day such as 2026-01-05",
    abort: true,
  })
  .refine((text) => text >= FIRST_DAY && text <= LAST_DAY, `must be between ${FIRST_DAY} and ${LAST_DAY}`);
export const httpUrl = z
  .url({ protocol: /^https?$/, error: "is not an http or https URL" })
  // The command `config` and error messages show it.
  .refine((text) => !URL.canParse(text) || new URL(text).password === "", "holds a password");
/** The message does not repeat the value, which may hold a password. */
export const serverUrl = (form: string, protocols: readonly string[]) =>
  z
    .string()
    .refine(
      (text) => URL.canParse(text) && protocols.includes(new URL(text).protocol),
      `is not of the form ${form}`,
    );
const parses = (parse: () => unknown) => {
  try {
    parse();
    return true;
  } catch {
    return false;
  }
};
export const postgresUrl = serverUrl("postgresql://user:password@host:5432/database", [
  "postgresql:",
  "postgres:",
]);
export const redisUrl = z
  .string()
  .refine((text) => parses(() => parseRedisUrl(text)), "is not of the form redis://host:6379");
export const redisHosts = z
  .string()
  .transform((text) => text.split(",").flatMap((host) => host.trim() || []))
  .refine(
    (hosts) => hosts.every((host) => parses(() => parseHost(host))),
    "is not of the form host:26379,host:26379",
  )
  .transform((hosts) => hosts.map((host) => parseHost(host, 26_379)));
export const onOrOff = z.enum(["on", "off"], { error: "must be on or off" });
// Any hexadecimal digits in UUID form: Postgres and Python accept such ids, whatever variant RFC 9562 requires.
// The message does not repeat the value: who pastes the key in the wrong place must not find it in a log.
export const workspaceId = z
  .guid({ error: "is not a UUID such as 4340c6dc-954e-4ef4-a1e8-f73cc1826017" })
  .transform((id) => id.toLowerCase());
export const wholeNumber = z.coerce.number({ error: "is not a number" }).int("is not a whole number");
export const rateLimit = wholeNumber.min(1, "must be at least 1").max(1_000_000, "must be 1000000 or less");
// undici takes a header with anything else for a failed request.
export const organizationId = z
  .string()
  .regex(/^[\x21-\x7e]*$/, "has a space, a line end or a character beyond ASCII");
export const bearerToken = z
  .string()
  .regex(/^[\x21-\x7e]+$/, "has a space, a line end or a character beyond ASCII: give the token alone")
  .min(8, "must have 8 characters or more");
/** A name that readers of views see. */
export const displayName = z
  .string()
  .trim()
  .min(1, "is blank")
  .max(200, "must have 200 characters or less")
  .regex(/^\P{Cc}*$/u, "has a control character");
/** Words of a list, comma-separated. One of them cannot be left out: everything else is compared with it. */
export const listOf = <const W extends string>(words: readonly W[], required: NoInfer<W>) =>
  z
    .string()
    .default(words.join())
    .transform((text) => text.split(",").flatMap((word) => word.trim() || []))
    .pipe(z.array(z.enum(words, { error: `is not one of ${words.join(", ")}` })))
    .refine((given) => given.includes(required), `must name ${required}`);
export const webToken = z.string().min(16, "must have 16 characters or more");
export const answerLimit = wholeNumber.min(1, "must be at least 1").max(1_048_576, "must be 1048576 or less");
