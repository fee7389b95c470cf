import { z } from "zod";
import { DateTime, Duration } from "./luxon.ts";
import { postgresUrlProblem } from "./postgres-url.ts";
import { redisUrlProblem } from "./redis-server.ts";
import { Secret } from "./secret.ts";
import { placeProblem, urlProblem } from "./url.ts";

const DAY_MS = 86_400_000;
const LONGEST_MS = 36_525 * DAY_MS;
export const FIRST_DAY = "1970-01-01";
export const LAST_DAY = "2100-01-01";

const duration = z.string().transform((text, context) => {
  const value = Duration.fromISO(text);
  const ms = value.isValid ? value.toMillis() : Number.NaN;
  if (ms >= 0 && ms <= LONGEST_MS) return ms;
  const message =
    ms > LONGEST_MS ? "must be 100 years or less" : "is not an ISO 8601 duration such as P3D or PT15M";
  context.issues.push({ code: "custom", input: text, message });
  return z.NEVER;
});
const day = z
  .string()
  .refine((text) => DateTime.fromFormat(text, "yyyy-MM-dd").isValid, {
    error: "is not a day such as 2026-01-05",
    abort: true,
  })
  .refine((text) => text >= FIRST_DAY && text <= LAST_DAY, `must be between ${FIRST_DAY} and ${LAST_DAY}`);
/** The messages omit the value, which may hold a password. */
const checked = (problemOf: (text: string) => string | undefined, text = z.string()) =>
  text.refine((text) => problemOf(text) === undefined, {
    error: ({ input }) => problemOf(String(input)) ?? "",
  });
const HTTP = /^https?:$/;
/** Refuses a password, because the command `config`, pages and error messages show the URL. */
function httpProblem(text: string): string | undefined {
  const problem = urlProblem(text, HTTP, "is not an http or https URL");
  if (problem !== undefined) return problem;
  const { username, password, search } = new URL(text);
  if (username !== "" || password !== "") return "has a user name or password";
  return search === "" ? undefined : "has a query";
}
const httpUrl = checked(httpProblem);
const webhookUrl = checked((text) => urlProblem(text, HTTP, "is not of the form https://host/path"));
/** Pages link to each other from the root of their host. */
const webUrl = checked((text) => {
  const problem = httpProblem(text);
  if (problem !== undefined || new URL(text).pathname === "/") return problem;
  return "has a path, and the pages work only at the root of a host: give them a name of their own, such as https://usage.example.com";
});
const postgresUrl = checked(postgresUrlProblem);
const redisUrl = checked(redisUrlProblem);
const listed = (text: string) => text.split(",").flatMap((word) => word.trim() || []);
const commaList = z.string().default("").transform(listed);
const oneOf = <const T extends readonly string[]>(...words: T) =>
  z.enum(words, { error: `must be ${words.join(", ").replace(/, (?=[^,]*$)/, " or ")}` });
// Postgres and Python accept any hexadecimal digits in UUID form, whatever RFC 9562 requires. The message omits the value,
// which may be a key.
const workspaceId = z
  .guid({ error: "is not a UUID such as 4340c6dc-954e-4ef4-a1e8-f73cc1826017" })
  .transform((id) => id.toLowerCase());
const wholeNumber = z.coerce.number({ error: "is not a number" }).int("is not a whole number");
const between = (least: number, most: number) =>
  wholeNumber.min(least, `must be at least ${least}`).max(most, `must be ${most} or less`);
const rateLimit = between(1, 1_000_000);
// undici treats a header with other characters as a failed request.
const organizationId = z
  .string()
  .regex(/^[\x21-\x7e]*$/, "has a space, a line end or a character beyond ASCII");
export const bearerToken = z
  .string()
  .regex(/^[\x21-\x7e]+$/, "has a space, a line end or a character beyond ASCII: give the token alone")
  .min(8, "must have 8 characters or more");
const displayName = z
  .string()
  .trim()
  .min(1, "is blank")
  .max(200, "must have 200 characters or less")
  .regex(/^\P{Cc}*$/u, "has a control character");
const METERS = ["traces", "longlived", "shortlived", "deployments", "sandboxes", "evaluators"] as const;
/** In the order of `METERS`. Traces are required, because everything else is compared with them. */
const meters = z
  .string()
  .default("traces,longlived,deployments,sandboxes,evaluators")
  .transform(listed)
  .pipe(z.array(z.enum(METERS, { error: `is not one of ${METERS.join(", ")}` })))
  .refine((given) => given.includes("traces"), "must name traces")
  .transform((given) => METERS.filter((meter) => given.includes(meter)));
const webToken = z.string().min(16, "must have 16 characters or more");
/** USAGE_WEB_READ_TOKEN holds a token, the address of an issuer of OAuth tokens, or both with a comma between. */
export function viewersOf(text: string): { token: string | undefined; issuer: string | undefined } {
  const [, token, issuer] = /^(?:(.*\S)\s*,\s*)?(https?:\/\/.*)$/s.exec(text) ?? [undefined, text];
  return { token, issuer };
}
const readToken = checked((text) => {
  const { token, issuer } = viewersOf(text);
  if (token !== undefined && token.length < 16) return "must have 16 characters or more";
  if (issuer === undefined) return undefined;
  const problem = httpProblem(issuer);
  if (problem !== undefined) return `names an issuer that ${problem}`;
  // Without https, somebody could replace the issuer's keys on the way.
  const isSafe = /^(https:|http:\/\/(localhost|127\.0\.0\.1|\[::1\])[:/])/.test(new URL(issuer).href);
  return isSafe ? undefined : "names an issuer without https";
});
/** An address or a network. A network of all addresses would let anybody choose their address. */
const proxy = z
  .union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()], {
    error: "is not an address or a network such as 10.0.0.0/8",
  })
  .refine((text) => !/\/0+$/.test(text), "trusts everybody");
const responseLimit = between(1, 1_048_576);

export interface Setting {
  readonly schema: z.ZodType;
  readonly about: string;
  readonly secret?: boolean;
}

const setting = <S extends z.ZodType>(schema: S, about: string) => ({ schema, about });
const secret = (schema: z.ZodType<string>, about: string) => {
  return { schema: schema.transform((text) => new Secret(text)).optional(), about, secret: true };
};

export const SETTINGS = {
  DATABASE_URL: secret(postgresUrl, "Postgres 15 or later that stores the usage."),
  DATABASE_MIGRATE_URL: secret(
    postgresUrl,
    "Postgres for `migrate` only: an address that bypasses a pooler, or the owner of the schema. Unset: DATABASE_URL.",
  ),
  DATABASE_POOL_SIZE: setting(
    between(2, 1_000).default(10),
    "Connections of a process to Postgres. Pages use up to six more.",
  ),
  REDIS_URL: secret(
    redisUrl,
    "Redis for the queue: redis://user:password@host:6379, rediss:// for TLS. Several hosts, comma-separated, or redis+cluster:// are a cluster; redis+sentinel://host:26379,host/mymaster are Sentinels. Commands with --inline do not need it.",
  ),
  REDIS_PASSWORD: secret(z.string(), "Password of Redis. Unset: the password in REDIS_URL."),
  REDIS_SENTINEL_PASSWORD: secret(z.string(), "Password of the Sentinels. Unset: none."),
  REDIS_CA_FILE: setting(
    z.string().optional(),
    "PEM file with the certificate authorities for Redis. Unset: those of Node.",
  ),
  REDIS_PREFIX: setting(
    z
      .string()
      .regex(/^[\w.:-]{1,100}$/, "must be 1 to 100 letters, digits, _, ., : or -")
      .default("usage-etl"),
    "Prefix of all keys in Redis. Services that share a Redis need different ones.",
  ),
  USAGE_BASE_URL: setting(
    httpUrl.optional(),
    "Billing host of your region or your own server, with its path prefix.",
  ),
  USAGE_CONTROL_PLANE_URL: setting(
    httpUrl.optional(),
    "Control plane of the platform, for `platform template` and `platform deployment`.",
  ),
  USAGE_DEPLOYMENT_URL: setting(
    httpUrl.optional(),
    "URL of one deployment, for `platform run`, `platform a2a` and `probe`.",
  ),
  USAGE_API_KEY: secret(z.string(), "API key of the platform with organization:read."),
  USAGE_WORKSPACE_IDS: setting(
    commaList.pipe(z.array(workspaceId)),
    "Ids of the workspaces to load, comma-separated. Empty: all that the platform lists.",
  ),
  USAGE_WORKSPACE_ID: setting(
    workspaceId.optional(),
    "Workspace of control plane requests (X-Tenant-Id). Needed with a key of the organization. Unset: not sent.",
  ),
  USAGE_BEARER_TOKEN: secret(
    bearerToken,
    "Bearer token for template calls, sent in addition to the API key. Unset: not sent.",
  ),
  USAGE_ORGANIZATION_ID: setting(
    organizationId.optional(),
    "Organization id (X-Organization-Id). Unset: not sent.",
  ),
  USAGE_METERS: setting(
    meters,
    "Meters to load, comma-separated: traces, longlived, shortlived, deployments, sandboxes, evaluators. Unset: all but shortlived, as far as the server counts them.",
  ),
  USAGE_DATA_START: setting(
    day.default("2026-01-05"),
    "First UTC day with usage. Earlier days are never fetched.",
  ),
  USAGE_SETTLE_AFTER: setting(
    duration.prefault("P3D"),
    "A day is final if it is fetched at least this long after its end.",
  ),
  USAGE_HOURLY_FOR: setting(duration.prefault("P31D"), "How far back hourly counts are loaded."),
  USAGE_HOURLY_KEEP: setting(
    duration.optional(),
    "How long hourly counts are kept once their days are loaded. Unset: forever.",
  ),
  USAGE_OWNERS_FILE: setting(
    z.string().optional(),
    "Owner file for `owners plan` and `owners apply`. `doctor` compares it with the one in force.",
  ),
  USAGE_RECONCILE_FOR: setting(duration.prefault("P45D"), "How far back `reconcile` goes without --from."),
  USAGE_RATE_LIMIT: setting(rateLimit.default(200), "Requests per 10 s to one source."),
  USAGE_RESPONSE_LIMIT: setting(
    responseLimit.optional(),
    "Largest response or export, in MiB, as received and decoded. Unset: 256.",
  ),
  USAGE_SYNC_EVERY: setting(
    duration.prefault("PT15M").refine((ms) => ms >= 1000 && ms <= 31 * DAY_MS, "must be a second to 31 days"),
    "How often the service syncs.",
  ),
  USAGE_REFRESH_AFTER: setting(
    duration.prefault("PT1H"),
    "How old a provisional figure by project, user or API key may get before a sync requests it again. PT0S: every sync requests it.",
  ),
  USAGE_EXPORT_DIR: setting(
    checked(placeProblem, z.string().trim()).optional(),
    "Folder or s3://bucket/prefix for Parquet files, which the service writes nightly. Unset: no files.",
  ),
  USAGE_EXPORT_VIEWS: setting(
    commaList.pipe(z.array(z.string().regex(/^[a-z0-9_]+$/, "is not the name of a view"))),
    "Views to write as files, comma-separated. Empty: the daily facts, their dimensions and the bill.",
  ),
  USAGE_KEEP_HISTORY: setting(
    duration.prefault("P400D"),
    "How long requests, finished fetch tasks and restatements are kept.",
  ),
  USAGE_ALERT_WEBHOOK_URL: secret(
    webhookUrl,
    "Webhook for all alerts. Unset: only the routes of the owner file get alerts.",
  ),
  HTTP_HOST: setting(
    z.string().default("127.0.0.1"),
    "Address where the service serves health, metrics and pages.",
  ),
  HTTP_PORT: setting(
    wholeNumber.min(0, "must be 0 to 65535").max(65_535, "must be 0 to 65535").default(9464),
    "Port where the service serves health, metrics and pages.",
  ),
  USAGE_WEB_TOKEN: secret(
    webToken,
    "Token of operators for the pages, and password of /queues (bull-board), 16 characters or more. Unset: the pages are open on 127.0.0.1, and off elsewhere.",
  ),
  USAGE_WEB_READ_TOKEN: secret(
    readToken,
    "Token of viewers for the pages, 16 characters or more. They see no e-mail addresses and no forms. An https address, alone or after a comma, is the issuer of OAuth tokens for AI clients.",
  ),
  USAGE_WEB_URL: setting(
    webUrl.optional(),
    "Address of the pages for links in alerts, such as https://usage.example.com, without a path. Unset: alerts name commands.",
  ),
  USAGE_WEB_USER_HEADER: setting(
    z
      .string()
      .regex(/^[A-Za-z0-9-]+$/, "is not the name of a header")
      .optional(),
    "Header in which a proxy sends the person's name, for the timeline. Unset: no names.",
  ),
  USAGE_WEB_TRUSTED_PROXIES: setting(
    commaList.pipe(z.array(proxy)),
    "Addresses and networks of proxies, comma-separated, that name the client (X-Forwarded-For) and the person. Unset: none.",
  ),
  USAGE_TELEMETRY: setting(
    oneOf("on", "off").default("off"),
    "Whether queues and workers emit OpenTelemetry spans. Node must be started with an SDK (docs/monitoring.md).",
  ),
  USAGE_USER_EMAIL: setting(
    oneOf("keep", "hash", "drop").default("keep"),
    "How e-mail addresses of users are stored: keep, hash or drop.",
  ),
  USAGE_PROVIDER_NAME: setting(
    displayName.optional(),
    "Provider's name in the FOCUS views. Unset: the host of USAGE_BASE_URL.",
  ),
  USAGE_INVOICE_ISSUER_NAME: setting(
    displayName.optional(),
    "Issuer of the invoice in the FOCUS views, such as a marketplace. Unset: the provider.",
  ),
  USAGE_SOURCES_FILE: setting(
    z.string().optional(),
    "JSON file with several sources, instead of USAGE_BASE_URL and USAGE_API_KEY.",
  ),
  USAGE_ENV_FILE: setting(
    z.string().optional(),
    "File with settings. The environment takes precedence. Unset: usage-etl.env in the working folder.",
  ),
  USAGE_LOG_LEVEL: setting(
    oneOf("silent", "error", "warn", "info", "debug").default("warn"),
    "Log level: silent, error, warn, info or debug.",
  ),
} as const satisfies Record<string, Setting>;

export const sourceSchema = z.strictObject({
  slug: z
    .string()
    .regex(/^[a-z][a-z0-9_-]{0,62}$/, "must be lower-case letters, digits, - and _, starting with a letter"),
  baseUrl: httpUrl,
  apiKey: z.string().min(1).optional(),
  apiKeyFile: z.string().min(1).optional(),
  organizationId: organizationId.optional(),
  /** Lower-case; empty: all that the platform lists. */
  workspaceIds: z.array(workspaceId).default([]),
  dataStart: day.default("2026-01-05"),
  rateLimit: rateLimit.default(200),
  /** MiB. */
  responseLimit: responseLimit.optional(),
  controlPlaneUrl: httpUrl.optional(),
  workspaceId: workspaceId.optional(),
  bearerToken: bearerToken.optional(),
  bearerTokenFile: z.string().min(1).optional(),
  deploymentUrl: httpUrl.optional(),
  providerName: displayName.optional(),
  invoiceIssuerName: displayName.optional(),
});

export function isSecret(name: string): boolean {
  return name in SETTINGS && settingOf(name).secret === true;
}

const ROUTE = secret(z.string(), "Secret of a route of the owner file.");

/** A name that is not in `SETTINGS` is a setting of a route. */
export function settingOf(name: string): Setting {
  return (SETTINGS as Readonly<Record<string, Setting>>)[name] ?? ROUTE;
}

/** Routes are named in an owner file, which also checks the values of their settings. */
export function isRouteSetting(name: string): boolean {
  return /^USAGE_ROUTE_[A-Z0-9_]*[A-Z0-9]$/.test(name) && !name.endsWith("_FILE");
}
