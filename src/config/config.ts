import { UsageError } from "../errors.ts";
import type { RedisServer } from "../redis-server.ts";
import { redisFrom } from "./redis.ts";
import type { Secret } from "./secret.ts";
import { readSources, type SourceConfig } from "./sources.ts";
import { type Environment, readVariables, refuse, unknownVariables, type Values } from "./variables.ts";

export { Secret } from "./secret.ts";
export { configurationDigest, keyDigest, type SourceConfig } from "./sources.ts";

export type Config = Readonly<ReturnType<typeof fromValues>>;
/** Hosts and key for the platform's other calls. */
export type PlatformAccess = Pick<
  SourceConfig,
  "organizationId" | "controlPlaneUrl" | "deploymentUrl" | "workspaceId" | "bearerToken"
> & {
  readonly apiKey: Secret | undefined;
};
/** `keep` stores user e-mail addresses, `hash` a digest of them, `drop` none. */
export type EmailPolicy = Config["userEmail"];

/**
 * Reads all settings once and reports all problems in one `UsageError` (`configuration_invalid`). An unknown `USAGE_`
 * variable is a problem too.
 */
export function readConfig(environment: Environment): Config {
  const problems = unknownVariables(environment);
  const values = readVariables(environment, problems);
  const sources = readSources(values, problems);
  const redis = redisFrom(values, problems);
  problems.push(...contradictions(values, environment, sources));
  refuse(problems);
  return Object.freeze(fromValues(values, sources, redis));
}

/** Times are in milliseconds. */
function fromValues(values: Values, sources: readonly SourceConfig[], redis: RedisServer | undefined) {
  return {
    databaseUrl: values.DATABASE_URL,
    /** Undefined: migrations too go to `databaseUrl`. */
    databaseMigrateUrl: values.DATABASE_MIGRATE_URL,
    /** Undefined: pages and metrics too read `databaseUrl`. */
    databaseReadUrl: values.DATABASE_READ_URL,
    readMaxLagMs: values.DATABASE_READ_MAX_LAG,
    /** Of the main pool of a process. */
    pool: {
      maxConnections: values.DATABASE_POOL_SIZE,
      connectMs: values.DATABASE_CONNECT_TIMEOUT,
      transactionStatementMs: values.DATABASE_STATEMENT_TIMEOUT,
    },
    /** As it was given. */
    redisUrl: values.REDIS_URL,
    redis,
    /** By their settings. They are read again for each login. */
    redisSecrets: {
      REDIS_URL: values.REDIS_URL,
      REDIS_USERNAME: values.REDIS_USERNAME,
      REDIS_PASSWORD: values.REDIS_PASSWORD,
      REDIS_SENTINEL_USERNAME: values.REDIS_SENTINEL_USERNAME,
      REDIS_SENTINEL_PASSWORD: values.REDIS_SENTINEL_PASSWORD,
    },
    sources,
    /** From the environment, for commands that need no billing host. */
    platform: {
      apiKey: values.USAGE_API_KEY,
      organizationId: values.USAGE_ORGANIZATION_ID,
      controlPlaneUrl: values.USAGE_CONTROL_PLANE_URL,
      deploymentUrl: values.USAGE_DEPLOYMENT_URL,
      workspaceId: values.USAGE_WORKSPACE_ID,
      bearerToken: values.USAGE_BEARER_TOKEN,
    },
    probeAssistant: values.USAGE_PROBE_ASSISTANT,
    /** Undefined: the service does not probe. */
    probeEveryMs: values.USAGE_PROBE_EVERY,
    /** How long a probe waits for billing and for its figures to stay, and when billing is late. */
    probeTimes: {
      withinMs: values.USAGE_PROBE_WITHIN,
      settleForMs: values.USAGE_PROBE_SETTLE_FOR,
      lateAfterMs: values.USAGE_PROBE_LATE_AFTER,
    },
    /** What syncs load, as far as the server counts it. */
    meters: metersOf(values),
    settleAfterMs: values.USAGE_SETTLE_AFTER,
    hourlyForMs: values.USAGE_HOURLY_FOR,
    /** Undefined: hours are kept forever. */
    hourlyKeepMs: values.USAGE_HOURLY_KEEP,
    reconcileForMs: values.USAGE_RECONCILE_FOR,
    syncEveryMs: values.USAGE_SYNC_EVERY,
    keepHistoryMs: values.USAGE_KEEP_HISTORY,
    /** Files for a warehouse. Without an address the service writes none. */
    files: {
      address: values.USAGE_EXPORT_DIR,
      views: values.USAGE_EXPORT_VIEWS,
      keepMs: values.USAGE_EXPORT_KEEP,
    },
    alertWebhookUrl: values.USAGE_ALERT_WEBHOOK_URL,
    httpHost: values.HTTP_HOST,
    httpPort: values.HTTP_PORT,
    /** Undefined: no bull-board page. */
    bullBoardToken: values.USAGE_BULL_BOARD_TOKEN,
    /** Undefined: the pages are open on this machine, and off elsewhere. */
    webToken: values.USAGE_WEB_TOKEN,
    webReadToken: values.USAGE_WEB_READ_TOKEN,
    webUserHeader: values.USAGE_WEB_USER_HEADER,
    telemetry: values.USAGE_TELEMETRY === "on",
    userEmail: values.USAGE_USER_EMAIL,
    logLevel: values.USAGE_LOG_LEVEL,
  };
}

function metersOf({ USAGE_KINDS: kinds, USAGE_TIERS: tiers }: Values) {
  const isLoaded = {
    traces: true,
    longlived: tiers.includes("longlived"),
    shortlived: tiers.includes("shortlived"),
    deployments: kinds.includes("langsmith_deployments"),
  };
  return (["traces", "longlived", "shortlived", "deployments"] as const).filter((meter) => isLoaded[meter]);
}

function contradictions(
  values: Values,
  environment: Environment,
  sources: readonly SourceConfig[],
): string[] {
  const problems: string[] = [];
  // Hours that are deleted while they are still loaded would be fetched again each night.
  const { USAGE_HOURLY_FOR: loadedMs, USAGE_HOURLY_KEEP: keepMs } = values;
  if (keepMs !== undefined && keepMs < loadedMs) {
    const loaded = environment.USAGE_HOURLY_FOR || "P31D by default";
    problems.push(
      `USAGE_HOURLY_KEEP is ${environment.USAGE_HOURLY_KEEP}, less than USAGE_HOURLY_FOR (${loaded})`,
    );
  }
  // Who means the workspaces to load must not load all of them.
  if (values.USAGE_WORKSPACE_ID !== undefined && values.USAGE_CONTROL_PLANE_URL === undefined) {
    problems.push(
      "USAGE_WORKSPACE_ID is for USAGE_CONTROL_PLANE_URL, which is not set; the workspaces to load are USAGE_WORKSPACE_IDS",
    );
  }
  const canProbe = sources.some((one) => one.deploymentUrl !== undefined && one.probeProject !== undefined);
  if (values.USAGE_PROBE_EVERY !== undefined && !canProbe) {
    problems.push("USAGE_PROBE_EVERY needs a source with USAGE_DEPLOYMENT_URL and USAGE_PROBE_PROJECT");
  }
  const { USAGE_PROBE_LATE_AFTER: lateMs, USAGE_PROBE_WITHIN: withinMs } = values;
  if (lateMs !== undefined && lateMs > withinMs) {
    problems.push("USAGE_PROBE_LATE_AFTER is more than USAGE_PROBE_WITHIN, so no probe would be late");
  }
  const { USAGE_WEB_TOKEN: token, USAGE_WEB_READ_TOKEN: readToken } = values;
  if (token !== undefined && token.reveal() === readToken?.reveal()) {
    problems.push("USAGE_WEB_TOKEN and USAGE_WEB_READ_TOKEN are the same, so nobody would only look");
  }
  return problems;
}

const DATABASE = "a Postgres 15 or later, such as postgres://user:password@host:5432/usage";
const DATABASE_MISSING = {
  code: "database_missing",
  message: "DATABASE_URL is not set.",
  next: `Run \`usage-etl init\`, or set it to ${DATABASE}. \`usage-etl demo\` needs none.`,
};

/** The sources of a command that needs the database too: the error names everything that is missing. */
export function requireSources(config: Config): readonly SourceConfig[] {
  if (config.sources.length > 0) return config.sources;
  const message = "No source is configured: set both USAGE_BASE_URL and USAGE_API_KEY.";
  const next =
    "Run `usage-etl init`, which asks for all of it. The key needs organization:read. For several sources set USAGE_SOURCES_FILE. `usage-etl demo` needs neither.";
  const lacksDatabase = config.databaseUrl === undefined;
  throw new UsageError({
    code: "source_missing",
    message: lacksDatabase ? `${message} ${DATABASE_MISSING.message}` : message,
    next: lacksDatabase ? `${next}\n  DATABASE_URL is ${DATABASE}.` : next,
  });
}

export function requireDatabaseUrl(config: Config): Secret {
  if (config.databaseUrl !== undefined) return config.databaseUrl;
  throw new UsageError(DATABASE_MISSING);
}
