import "./validation.ts";
import { createHash } from "node:crypto";
import { z } from "zod";
import { ENV_FILE, envFileOf } from "./env-file.ts";
import { UsageError } from "./errors.ts";
import { NestedTooDeepError, parseJson } from "./json.ts";
import { type RedisServer, redisServerOf } from "./redis-server.ts";
import { readSecretFile, Secret, secretFromFile } from "./secret.ts";
import { bearerToken, sourceSchema, viewersOf } from "./settings.ts";
import {
  type Environment,
  readRouteSecrets,
  readVariables,
  refuse,
  unknownVariables,
  type Values,
} from "./variables.ts";

export type Config = Readonly<ReturnType<typeof fromValues>>;
export type PlatformAccess = Pick<
  SourceConfig,
  "organizationId" | "controlPlaneUrl" | "deploymentUrl" | "workspaceId" | "bearerToken"
> & {
  readonly apiKey: Secret | undefined;
};
/** `hash` stores a digest of user e-mail addresses, `drop` nothing. */
export type EmailPolicy = Config["userEmail"];

/** Reports all problems, including unknown `USAGE_` variables, in one `UsageError` (`configuration_invalid`). */
export function readConfig(environment: Environment): Config {
  const problems = unknownVariables(environment);
  const values = readVariables(environment, problems);
  const sources = readSources(values, problems);
  const redis = redisFrom(values, problems);
  const routeSecrets = readRouteSecrets(environment, problems);
  const { USAGE_ALERT_WEBHOOK_URL: webhook } = values;
  if (webhook !== undefined) routeSecrets.set("USAGE_ALERT_WEBHOOK_URL", webhook);
  problems.push(...contradictions(values, environment));
  refuse(problems);
  const hasEnvFile = envFileOf(environment) !== undefined;
  return Object.freeze(fromValues(values, { sources, redis, routeSecrets, hasEnvFile }));
}

/** Times are in milliseconds. */
function fromValues(
  values: Values,
  read: {
    sources: readonly SourceConfig[];
    redis: RedisServer | undefined;
    routeSecrets: ReadonlyMap<string, Secret>;
    hasEnvFile: boolean;
  },
) {
  return {
    ...read,
    databaseUrl: values.DATABASE_URL,
    databaseMigrateUrl: values.DATABASE_MIGRATE_URL,
    maxConnections: values.DATABASE_POOL_SIZE,
    redisUrl: values.REDIS_URL,
    redisSecrets: {
      REDIS_URL: values.REDIS_URL,
      REDIS_PASSWORD: values.REDIS_PASSWORD,
      REDIS_SENTINEL_PASSWORD: values.REDIS_SENTINEL_PASSWORD,
    },
    platform: {
      apiKey: values.USAGE_API_KEY,
      organizationId: values.USAGE_ORGANIZATION_ID,
      controlPlaneUrl: values.USAGE_CONTROL_PLANE_URL,
      deploymentUrl: values.USAGE_DEPLOYMENT_URL,
      workspaceId: values.USAGE_WORKSPACE_ID,
      bearerToken: values.USAGE_BEARER_TOKEN,
    },
    meters: values.USAGE_METERS,
    settleAfterMs: values.USAGE_SETTLE_AFTER,
    hourlyForMs: values.USAGE_HOURLY_FOR,
    hourlyKeepMs: values.USAGE_HOURLY_KEEP,
    reconcileForMs: values.USAGE_RECONCILE_FOR,
    syncEveryMs: values.USAGE_SYNC_EVERY,
    refreshAfterMs: values.USAGE_REFRESH_AFTER,
    keepHistoryMs: values.USAGE_KEEP_HISTORY,
    files: {
      address: values.USAGE_EXPORT_DIR,
      views: values.USAGE_EXPORT_VIEWS,
    },
    ownersFile: values.USAGE_OWNERS_FILE,
    webUrl: values.USAGE_WEB_URL,
    httpHost: values.HTTP_HOST,
    httpPort: values.HTTP_PORT,
    /** Undefined: the pages are open on this machine, and off elsewhere. */
    webToken: values.USAGE_WEB_TOKEN,
    webReadToken: values.USAGE_WEB_READ_TOKEN,
    webTrustedProxies: values.USAGE_WEB_TRUSTED_PROXIES,
    webUserHeader: values.USAGE_WEB_USER_HEADER,
    telemetry: values.USAGE_TELEMETRY === "on",
    userEmail: values.USAGE_USER_EMAIL,
    logLevel: values.USAGE_LOG_LEVEL,
  };
}

function contradictions(values: Values, environment: Environment): string[] {
  const problems: string[] = [];
  // Hours that are deleted while they are still loaded would be fetched again each night.
  const { USAGE_HOURLY_FOR: loadedMs, USAGE_HOURLY_KEEP: keepMs } = values;
  if (keepMs !== undefined && keepMs < loadedMs) {
    const loaded = environment.USAGE_HOURLY_FOR || "P31D by default";
    problems.push(
      `USAGE_HOURLY_KEEP is ${environment.USAGE_HOURLY_KEEP}, less than USAGE_HOURLY_FOR (${loaded})`,
    );
  }
  // A mix-up of the two settings must not load all workspaces.
  if (values.USAGE_WORKSPACE_ID !== undefined && values.USAGE_CONTROL_PLANE_URL === undefined) {
    problems.push(
      "USAGE_WORKSPACE_ID is for USAGE_CONTROL_PLANE_URL, which is not set; USAGE_WORKSPACE_IDS names the workspaces to load",
    );
  }
  const { USAGE_WEB_TOKEN: token, USAGE_WEB_READ_TOKEN: readToken } = values;
  const viewers = readToken && viewersOf(readToken.reveal());
  if (token !== undefined && token.reveal() === viewers?.token) {
    problems.push(
      "USAGE_WEB_TOKEN and USAGE_WEB_READ_TOKEN are the same, so every viewer would be an operator",
    );
  }
  if (viewers?.issuer !== undefined && values.USAGE_WEB_URL === undefined) {
    problems.push(
      "USAGE_WEB_READ_TOKEN names an issuer, whose tokens are for USAGE_WEB_URL/mcp: set USAGE_WEB_URL",
    );
  }
  if (values.USAGE_WEB_USER_HEADER !== undefined && values.USAGE_WEB_TRUSTED_PROXIES?.length === 0) {
    problems.push(
      "USAGE_WEB_USER_HEADER is for a proxy to send: set USAGE_WEB_TRUSTED_PROXIES to the address of the proxy",
    );
  }
  return problems;
}

const DATABASE = "a Postgres 15 or later, such as postgres://user:password@host:5432/usage";

function databaseMissing({ hasEnvFile }: Config) {
  return {
    code: "database_missing",
    message: `DATABASE_URL is not set${hasEnvFile ? "" : `, and no ${ENV_FILE} is in this folder`}.`,
    next: `Run \`usage-etl init\`, or set DATABASE_URL to ${DATABASE}. \`usage-etl demo\` needs no database.`,
  };
}

/** For commands that need the database too, so the error names everything that is missing. */
export function requireSources(config: Config): readonly SourceConfig[] {
  if (config.sources.length > 0) return config.sources;
  const message = "No source is configured: set both USAGE_BASE_URL and USAGE_API_KEY.";
  const next =
    "Run `usage-etl init`, which asks for both. The key needs organization:read. For several sources set USAGE_SOURCES_FILE. `usage-etl demo` needs neither.";
  const lacksDatabase = config.databaseUrl === undefined;
  throw new UsageError({
    code: "source_missing",
    message: lacksDatabase ? `${message} ${databaseMissing(config).message}` : message,
    next: lacksDatabase ? `${next}\n  DATABASE_URL is ${DATABASE}.` : next,
  });
}

export function requireDatabaseUrl(config: Config): Secret {
  if (config.databaseUrl !== undefined) return config.databaseUrl;
  throw new UsageError(databaseMissing(config));
}

function redisFrom(values: Values, problems: string[]): RedisServer | undefined {
  const { REDIS_URL: url, REDIS_PREFIX: prefix, REDIS_CA_FILE: caFile } = values;
  if (url === undefined) return undefined;
  const ca = caFile === undefined ? undefined : readSecretFile(caFile, "REDIS_CA_FILE", problems);
  const read = () => ({
    url: url.reveal(),
    prefix,
    password: values.REDIS_PASSWORD?.reveal(),
    sentinelPassword: values.REDIS_SENTINEL_PASSWORD?.reveal(),
    ca,
  });
  const server = redisServerOf(read(), read);
  if (ca !== undefined && !ca.includes("-----BEGIN CERTIFICATE-----")) {
    problems.push("REDIS_CA_FILE holds no certificate in PEM form");
  }
  if (ca !== undefined && server.access().tls === undefined) {
    problems.push("REDIS_CA_FILE is for TLS: begin REDIS_URL with rediss");
  }
  if (server.kind === "cluster" && server.database !== 0) {
    problems.push("REDIS_URL names a database, and a cluster has only database 0");
  }
  return server;
}

export function readRedis(environment: Environment): RedisServer | undefined {
  const problems: string[] = [];
  const server = redisFrom(readVariables(environment, problems), problems);
  refuse(problems.filter((problem) => problem.startsWith("REDIS_")));
  return server;
}

export function secretFilesOf(config: Config): ReadonlyMap<string, Secret> {
  const { databaseUrl, redisSecrets, sources } = config;
  const all: [name: string, secret: Secret | undefined][] = [
    ...Object.entries({ DATABASE_URL: databaseUrl, ...redisSecrets }).map(
      ([name, secret]): [string, Secret | undefined] => [`${name}_FILE`, secret],
    ),
    ...sources.flatMap(({ slug, apiKey, bearerToken }): [string, Secret | undefined][] => [
      [`API key file of source ${slug}`, apiKey],
      [`bearer token file of source ${slug}`, bearerToken],
    ]),
  ];
  return new Map(all.flatMap(([name, secret]) => (secret?.isFromFile() ? [[name, secret]] : [])));
}

type SourceFields = Omit<
  z.output<typeof sourceSchema>,
  "apiKey" | "apiKeyFile" | "bearerToken" | "bearerTokenFile"
>;

export interface SourceConfig extends Readonly<SourceFields> {
  readonly apiKey: Secret;
  readonly bearerToken?: Secret | undefined;
}

function readSources(values: Values, problems: string[]): SourceConfig[] {
  const { USAGE_SOURCES_FILE: file, USAGE_BASE_URL: baseUrl, USAGE_API_KEY: apiKey } = values;
  if (file !== undefined) {
    if (baseUrl !== undefined || apiKey !== undefined) {
      problems.push("USAGE_SOURCES_FILE replaces USAGE_BASE_URL and USAGE_API_KEY; keep one of them");
    }
    return readSourcesFile(file, problems);
  }
  if (baseUrl === undefined || apiKey === undefined) return [];
  return [
    {
      slug: "default",
      baseUrl,
      apiKey,
      organizationId: values.USAGE_ORGANIZATION_ID,
      workspaceIds: values.USAGE_WORKSPACE_IDS,
      dataStart: values.USAGE_DATA_START,
      rateLimit: values.USAGE_RATE_LIMIT,
      responseLimit: values.USAGE_RESPONSE_LIMIT,
      controlPlaneUrl: values.USAGE_CONTROL_PLANE_URL,
      deploymentUrl: values.USAGE_DEPLOYMENT_URL,
      workspaceId: values.USAGE_WORKSPACE_ID,
      bearerToken: values.USAGE_BEARER_TOKEN,
      providerName: values.USAGE_PROVIDER_NAME,
      invoiceIssuerName: values.USAGE_INVOICE_ISSUER_NAME,
    },
  ];
}

function readSourcesFile(file: string, problems: string[]): SourceConfig[] {
  const text = readSecretFile(file, "USAGE_SOURCES_FILE", problems);
  if (text === undefined) return [];
  let json: unknown;
  try {
    json = parseJson(text);
  } catch (error) {
    // The parser's message repeats parts of the file, which may hold a key.
    const { message } = error as Error;
    const [place] = /\(line \d+ column \d+\)$/.exec(message) ?? [""];
    const problem =
      error instanceof NestedTooDeepError ? `cannot be read: ${message}` : `is not JSON ${place}`;
    problems.push(`USAGE_SOURCES_FILE ${file} ${problem}`.trimEnd());
    return [];
  }
  const parsed = z.array(sourceSchema).min(1, "holds no source").safeParse(json);
  if (!parsed.success) {
    problems.push(...parsed.error.issues.map((issue) => `${file}: ${issue.path.join(".")} ${issue.message}`));
    return [];
  }
  const slugs = parsed.data.map((source) => source.slug);
  for (const slug of new Set(slugs.filter((slug, i) => slugs.indexOf(slug) !== i))) {
    problems.push(`${file}: slug ${slug} is used twice`);
  }
  return parsed.data.flatMap(({ apiKey, apiKeyFile, bearerToken: token, bearerTokenFile, ...source }) => {
    const at = `${file}: source ${source.slug}`;
    if (source.workspaceId !== undefined && source.controlPlaneUrl === undefined) {
      problems.push(
        `${at} has a workspaceId, which is for its controlPlaneUrl; workspaceIds names the workspaces to load`,
      );
    }
    if (token !== undefined && bearerTokenFile !== undefined) {
      problems.push(`${at} has bearerToken and bearerTokenFile; keep one`);
    }
    if ((apiKey === undefined) === (apiKeyFile === undefined)) {
      problems.push(`${at} needs apiKey or apiKeyFile, one of them`);
      return [];
    }
    const secretOf = (
      name: string,
      given: string | undefined,
      path: string | undefined,
      schema: z.ZodString,
    ) => {
      if (path === undefined) return given === undefined ? undefined : new Secret(given);
      const where = `${file}: ${name}File of ${source.slug}`;
      return secretFromFile(path, where, problems, (text) => {
        return schema.safeParse(text).error?.issues.map(({ message }) => `${where} ${message}`) ?? [];
      });
    };
    const bearer = secretOf("bearerToken", token, bearerTokenFile, bearerToken);
    const key = secretOf("apiKey", apiKey, apiKeyFile, z.string());
    return key === undefined ? [] : [{ ...source, apiKey: key, bearerToken: bearer }];
  });
}

/** A changed digest makes stored failures due at once. It depends on the key but does not reveal it. */
export function configurationDigest(source: SourceConfig): string {
  const { baseUrl, organizationId, workspaceIds, dataStart, responseLimit } = source;
  const key = source.apiKey.reveal();
  // The limit comes last and only if it is set, so that digests without it stay the same.
  const limit = responseLimit === undefined ? [] : [responseLimit];
  return digestOf([baseUrl, organizationId, workspaceIds, dataStart, key, ...limit]);
}

/** Shows that the key changed without revealing it. */
export function keyDigest({ slug, apiKey }: Pick<SourceConfig, "slug" | "apiKey">): string {
  return digestOf(["key", slug, apiKey.reveal()]);
}

function digestOf(values: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(values)).digest("hex").slice(0, 32);
}

export function sourceFlagsOf({ sources }: Pick<Config, "sources">, slug: string): string {
  return sources.length > 1 ? ` --source ${slug}` : "";
}
