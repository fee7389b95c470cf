import { DateTime, Duration } from "luxon";
import { z } from "zod";

const duration = z.string().transform((text, context) => {
  const value = Duration.fromISO(text);
  if (value.isValid && value.toMillis() >= 0) return value.toMillis();
  context.issues.push({
    code: "custom",
    input: text,
    message: "is not an ISO 8601 duration such as P3D or PT15M",
  });
  return z.NEVER;
});
const day = z
  .string()
  .refine((text) => DateTime.fromFormat(text, "yyyy-MM-dd").isValid, "is not a day such as 2026-01-05");
const httpUrl = z
  .url({ protocol: /^https?$/, error: "is not an http or https URL" })
  // `config` and messages show it.
  .refine((text) => !URL.canParse(text) || new URL(text).password === "", "holds a password");
/** Not repeated where it is wrong: it may hold a password. */
const serverUrl = (form: string, protocols: readonly string[]) =>
  z
    .string()
    .refine(
      (text) => URL.canParse(text) && protocols.includes(new URL(text).protocol),
      `is not of the form ${form}`,
    );
const postgresUrl = serverUrl("postgresql://user:password@host:5432/database", ["postgresql:", "postgres:"]);
const redisUrl = serverUrl("redis://host:6379", ["redis:", "rediss:"]);
// Any digits in the form of a UUID: Postgres and Python take such ids, whatever RFC 9562 says of their variant.
const workspaceId = z
  .guid({ error: (issue) => `has ${JSON.stringify(issue.input)}, which is not a UUID` })
  .transform((id) => id.toLowerCase());
const rateLimit = z.coerce
  .number({ error: "is not a number" })
  .int("is not a whole number")
  .min(1, "must be at least 1");

/** Every environment variable that is read: its schema with default, and one sentence with its unit. */
export const SETTINGS = {
  DATABASE_URL: {
    schema: postgresUrl.optional(),
    about: "Postgres that the records are kept in.",
    secret: true,
  },
  REDIS_URL: {
    schema: redisUrl.optional(),
    about: "Redis of the queue; --inline does without.",
    secret: true,
  },
  USAGE_BASE_URL: {
    schema: httpUrl.optional(),
    about: "Billing host of the platform, with its path prefix.",
    secret: false,
  },
  USAGE_CONTROL_PLANE_URL: {
    schema: httpUrl.optional(),
    about: "Control plane of the platform, for `platform template` and `platform deployment`.",
    secret: false,
  },
  USAGE_DEPLOYMENT_URL: {
    schema: httpUrl.optional(),
    about: "One deployment, for `platform run`, `platform a2a` and the probe.",
    secret: false,
  },
  USAGE_PROBE_PROJECT: {
    schema: z.string().optional(),
    about: "Name or id of the project that the deployment traces into, and that nobody else uses.",
    secret: false,
  },
  USAGE_PROBE_ASSISTANT: {
    schema: z.string().default("agent"),
    about: "Assistant of the deployment that the probe talks to.",
    secret: false,
  },
  USAGE_PROBE_EVERY: {
    schema: duration.optional().refine((ms) => ms === undefined || ms >= 60_000, "must be a minute or more"),
    about: "How often the service probes the meter, which costs traces; unset: never.",
    secret: false,
  },
  USAGE_PROBE_WITHIN: {
    schema: duration
      .prefault("PT1H")
      .refine((ms) => ms >= 1000 && ms <= 20 * 86_400_000, "must be a second to 20 days"),
    about: "How long the probe waits for its traffic to be billed.",
    secret: false,
  },
  USAGE_API_KEY: { schema: z.string().min(1).optional(), about: "Key with organization:read.", secret: true },
  USAGE_WORKSPACE_IDS: {
    schema: z
      .string()
      .default("")
      .transform((text) =>
        text
          .split(",")
          .map((id) => id.trim())
          .filter((id) => id !== ""),
      )
      .pipe(z.array(workspaceId)),
    about: "Workspaces to read, comma-separated; empty: listed from the platform.",
    secret: false,
  },
  USAGE_ORGANIZATION_ID: {
    schema: z.string().optional(),
    about: "Sent as X-Organization-Id where set.",
    secret: false,
  },
  USAGE_DATA_START: {
    schema: day.default("2026-01-05"),
    about: "First UTC day with usage; nothing before is asked for.",
    secret: false,
  },
  USAGE_SETTLE_AFTER: {
    schema: duration.prefault("P3D"),
    about: "Age of a bucket's end at which a fetch settles it.",
    secret: false,
  },
  USAGE_HOURLY_FOR: {
    schema: duration.prefault("P31D"),
    about: "How far back hours are kept up to date.",
    secret: false,
  },
  USAGE_HOURLY_KEEP: {
    schema: duration.optional(),
    about: "How long hours are kept once their days are loaded; empty: for good.",
    secret: false,
  },
  USAGE_RECONCILE_FOR: {
    schema: duration.prefault("P45D"),
    about: "How far back reconcile looks where no --from is given.",
    secret: false,
  },
  USAGE_RATE_LIMIT: { schema: rateLimit.default(200), about: "Requests per 10 s and source.", secret: false },
  USAGE_SYNC_EVERY: {
    schema: duration.prefault("PT15M").refine((ms) => ms >= 1000, "must be a second or more"),
    about: "How often the service plans a round.",
    secret: false,
  },
  USAGE_KEEP_HISTORY: {
    schema: duration.prefault("P400D"),
    about: "How long ledgers of requests and backfills are kept.",
    secret: false,
  },
  USAGE_ALERT_WEBHOOK_URL: {
    schema: serverUrl("https://host/path", ["https:", "http:"]).optional(),
    about:
      "Told of differences, failed totals, changes of settled counts and staleness; without it nobody is.",
    secret: true,
  },
  HTTP_HOST: {
    schema: z.string().default("127.0.0.1"),
    about: "Address that the service's health and metrics listen on.",
    secret: false,
  },
  HTTP_PORT: {
    schema: z.coerce
      .number({ error: "is not a number" })
      .int("is not a whole number")
      .min(0)
      .max(65_535)
      .default(9464),
    about: "Port of the service's health and metrics.",
    secret: false,
  },
  USAGE_BULL_BOARD_TOKEN: {
    schema: z.string().min(16, "must have 16 characters or more").optional(),
    about: "Password of the page /queues (bull-board); without it there is no such page.",
    secret: true,
  },
  USAGE_TELEMETRY: {
    schema: z.enum(["on", "off"], { error: "must be on or off" }).default("off"),
    about: "OpenTelemetry spans of queues and workers, for the SDK that Node was started with.",
    secret: false,
  },
  USAGE_USER_EMAIL: {
    schema: z.enum(["keep", "hash", "drop"], { error: "must be keep, hash or drop" }).default("keep"),
    about: "What is stored of user e-mail addresses.",
    secret: false,
  },
  USAGE_SOURCES_FILE: {
    schema: z.string().optional(),
    about: "JSON file with several sources, in place of USAGE_BASE_URL and its like.",
    secret: false,
  },
  USAGE_LOG_LEVEL: {
    schema: z.enum(["silent", "error", "warn", "info", "debug"]).default("warn"),
    about: "Level of the log on stderr.",
    secret: false,
  },
} as const;

/** One source of `USAGE_SOURCES_FILE`. */
export const sourceSchema = z.strictObject({
  slug: z
    .string()
    .regex(/^[a-z][a-z0-9_-]{0,62}$/, "must be lower-case letters, digits, - and _, beginning with a letter"),
  baseUrl: httpUrl,
  apiKey: z.string().min(1).optional(),
  apiKeyFile: z.string().min(1).optional(),
  organizationId: z.string().optional(),
  workspaceIds: z.array(workspaceId).default([]),
  dataStart: day.default("2026-01-05"),
  rateLimit: rateLimit.default(200),
  controlPlaneUrl: httpUrl.optional(),
  deploymentUrl: httpUrl.optional(),
  probeProject: z.string().min(1).optional(),
});

/** Name, unit and meaning of every setting, for `usage-etl config`. */
export function describeSettings(): { name: string; about: string; secret: boolean }[] {
  return Object.entries(SETTINGS).map(([name, { about, secret }]) => ({ name, about, secret }));
}
