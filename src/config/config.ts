import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { z } from "zod";
import { UsageError } from "../errors.ts";
import { SETTINGS, sourceSchema } from "./settings.ts";
import { nearest } from "./spelling.ts";

/** A value that is never shown in a log, an error or a page. */
export class Secret {
  readonly #value: string;
  constructor(value: string) {
    this.#value = value;
  }
  reveal(): string {
    return this.#value;
  }
  toJSON(): string {
    return "[redacted]";
  }
  toString(): string {
    return "[redacted]";
  }
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return "[redacted]";
  }
}

/** `keep` stores user e-mail addresses, `hash` a digest of them, `drop` none. */
export type EmailPolicy = "keep" | "hash" | "drop";

export interface SourceConfig {
  readonly slug: string;
  readonly baseUrl: string;
  readonly apiKey: Secret;
  readonly organizationId: string | undefined;
  /** Lower-case; empty: listed from the platform. */
  readonly workspaceIds: readonly string[];
  /** UTC day, `YYYY-MM-DD`. */
  readonly dataStart: string;
  /** Requests per 10 s. */
  readonly rateLimit: number;
  readonly controlPlaneUrl?: string | undefined;
  readonly deploymentUrl?: string | undefined;
  /** Name or id of the project that the deployment traces into. */
  readonly probeProject?: string | undefined;
}

/** Hosts and key for the platform's other calls. */
export type PlatformAccess = Pick<SourceConfig, "organizationId" | "controlPlaneUrl" | "deploymentUrl"> & {
  readonly apiKey: Secret | undefined;
};

export interface Config {
  readonly databaseUrl: Secret | undefined;
  readonly redisUrl: Secret | undefined;
  readonly sources: readonly SourceConfig[];
  /** From the environment, for commands that need no billing host. */
  readonly platform: PlatformAccess;
  readonly probeAssistant: string;
  /** Undefined: the service does not probe. */
  readonly probeEveryMs: number | undefined;
  readonly probeWithinMs: number;
  readonly settleAfterMs: number;
  readonly hourlyForMs: number;
  /** Undefined: hours are kept forever. */
  readonly hourlyKeepMs: number | undefined;
  readonly reconcileForMs: number;
  readonly syncEveryMs: number;
  readonly keepHistoryMs: number;
  readonly alertWebhookUrl: Secret | undefined;
  readonly httpHost: string;
  readonly httpPort: number;
  /** Undefined: no bull-board page. */
  readonly bullBoardToken: Secret | undefined;
  readonly telemetry: boolean;
  readonly userEmail: EmailPolicy;
  readonly logLevel: string;
}

type SettingName = keyof typeof SETTINGS;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads all settings once and reports all problems in one `UsageError` (`configuration_invalid`). An unknown `USAGE_`
 * variable is a problem too.
 */
export function readConfig(environment: Environment): Config {
  const problems: string[] = [];
  refuseUnknown(environment, problems);
  const values: Partial<Record<SettingName, unknown>> = {};
  for (const [name, setting] of Object.entries(SETTINGS) as [SettingName, (typeof SETTINGS)[SettingName]][]) {
    const parsed = setting.schema.safeParse(readVariable(environment, name, problems));
    if (parsed.success) values[name] = parsed.data;
    else problems.push(...parsed.error.issues.map((issue) => `${name} ${issue.message}`));
  }
  const read = <T>(name: SettingName) => values[name] as T;
  refuseShortKeep(read, environment, problems);
  const sources = readSources(read, problems);
  const canProbe = sources.some((one) => one.deploymentUrl !== undefined && one.probeProject !== undefined);
  if (read<number | undefined>("USAGE_PROBE_EVERY") !== undefined && !canProbe) {
    problems.push("USAGE_PROBE_EVERY needs a source with USAGE_DEPLOYMENT_URL and USAGE_PROBE_PROJECT");
  }
  if (problems.length > 0) {
    throw new UsageError({
      code: "configuration_invalid",
      message: `The configuration has ${problems.length} problem${problems.length > 1 ? "s" : ""}:\n  ${problems.join("\n  ")}`,
      next: "Correct them. `usage-etl config` shows the settings in use.",
    });
  }
  const secret = (value: string | undefined) => (value === undefined ? undefined : new Secret(value));
  return Object.freeze({
    databaseUrl: secret(read<string | undefined>("DATABASE_URL")),
    redisUrl: secret(read<string | undefined>("REDIS_URL")),
    sources,
    platform: {
      apiKey: secret(read<string | undefined>("USAGE_API_KEY")),
      organizationId: read<string | undefined>("USAGE_ORGANIZATION_ID"),
      controlPlaneUrl: read<string | undefined>("USAGE_CONTROL_PLANE_URL"),
      deploymentUrl: read<string | undefined>("USAGE_DEPLOYMENT_URL"),
    },
    probeAssistant: read<string>("USAGE_PROBE_ASSISTANT"),
    probeEveryMs: read<number | undefined>("USAGE_PROBE_EVERY"),
    probeWithinMs: read<number>("USAGE_PROBE_WITHIN"),
    settleAfterMs: read<number>("USAGE_SETTLE_AFTER"),
    hourlyForMs: read<number>("USAGE_HOURLY_FOR"),
    hourlyKeepMs: read<number | undefined>("USAGE_HOURLY_KEEP"),
    reconcileForMs: read<number>("USAGE_RECONCILE_FOR"),
    syncEveryMs: read<number>("USAGE_SYNC_EVERY"),
    keepHistoryMs: read<number>("USAGE_KEEP_HISTORY"),
    alertWebhookUrl: secret(read<string | undefined>("USAGE_ALERT_WEBHOOK_URL")),
    httpHost: read<string>("HTTP_HOST"),
    httpPort: read<number>("HTTP_PORT"),
    bullBoardToken: secret(read<string | undefined>("USAGE_BULL_BOARD_TOKEN")),
    telemetry: read<"on" | "off">("USAGE_TELEMETRY") === "on",
    userEmail: read<EmailPolicy>("USAGE_USER_EMAIL"),
    logLevel: read<string>("USAGE_LOG_LEVEL"),
  });
}

function refuseUnknown(environment: Environment, problems: string[]): void {
  const known = Object.entries(SETTINGS).flatMap(([name, { secret }]) =>
    secret ? [name, `${name}_FILE`] : [name],
  );
  for (const name of Object.keys(environment)) {
    if (!name.startsWith("USAGE_") || known.includes(name)) continue;
    const close = nearest(name, known);
    problems.push(`${name} is not a setting${close === undefined ? "" : `; did you mean ${close}?`}`);
  }
}

/** Hours that are deleted while they are still loaded would be fetched again each night. */
function refuseShortKeep(
  read: <T>(name: SettingName) => T,
  environment: Environment,
  problems: string[],
): void {
  const [keptUpMs, keepMs] = [
    read<number | undefined>("USAGE_HOURLY_FOR"),
    read<number | undefined>("USAGE_HOURLY_KEEP"),
  ];
  if (keptUpMs === undefined || keepMs === undefined || keepMs >= keptUpMs) return;
  const keptUp = environment.USAGE_HOURLY_FOR || "P31D by default";
  problems.push(
    `USAGE_HOURLY_KEEP is ${environment.USAGE_HOURLY_KEEP}, less than USAGE_HOURLY_FOR (${keptUp})`,
  );
}

/** The value of a variable, or for a secret the content of its `NAME_FILE`. An empty value counts as unset. */
function readVariable(environment: Environment, name: SettingName, problems: string[]): string | undefined {
  const value = environment[name] || undefined;
  const file = SETTINGS[name].secret ? environment[`${name}_FILE`] || undefined : undefined;
  if (file === undefined) return value;
  if (value !== undefined) problems.push(`${name} and ${name}_FILE are both set; keep one`);
  return readSecretFile(file, `${name}_FILE`, problems);
}

function readSecretFile(file: string, where: string, problems: string[]): string | undefined {
  try {
    const text = readFileSync(file, "utf8").trim();
    if (text === "") problems.push(`${where} ${file} is empty`);
    return text === "" ? undefined : text;
  } catch (error) {
    problems.push(`${where} ${file} cannot be read: ${(error as Error).message}`);
    return undefined;
  }
}

function readSources(read: <T>(name: SettingName) => T, problems: string[]): SourceConfig[] {
  const file = read<string | undefined>("USAGE_SOURCES_FILE");
  const baseUrl = read<string | undefined>("USAGE_BASE_URL");
  const apiKey = read<string | undefined>("USAGE_API_KEY");
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
      apiKey: new Secret(apiKey),
      organizationId: read<string | undefined>("USAGE_ORGANIZATION_ID"),
      workspaceIds: read<string[] | undefined>("USAGE_WORKSPACE_IDS") ?? [],
      dataStart: read<string>("USAGE_DATA_START"),
      rateLimit: read<number>("USAGE_RATE_LIMIT"),
      controlPlaneUrl: read<string | undefined>("USAGE_CONTROL_PLANE_URL"),
      deploymentUrl: read<string | undefined>("USAGE_DEPLOYMENT_URL"),
      probeProject: read<string | undefined>("USAGE_PROBE_PROJECT"),
    },
  ];
}

function readSourcesFile(file: string, problems: string[]): SourceConfig[] {
  const text = readSecretFile(file, "USAGE_SOURCES_FILE", problems);
  if (text === undefined) return [];
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    problems.push(`USAGE_SOURCES_FILE ${file} is not JSON`);
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
  return parsed.data.flatMap(({ apiKey, apiKeyFile, ...source }) => {
    if ((apiKey === undefined) === (apiKeyFile === undefined)) {
      problems.push(`${file}: source ${source.slug} needs apiKey or apiKeyFile, one of them`);
      return [];
    }
    const key =
      apiKey ?? readSecretFile(apiKeyFile as string, `${file}: apiKeyFile of ${source.slug}`, problems);
    return key === undefined
      ? []
      : [{ ...source, organizationId: source.organizationId, apiKey: new Secret(key) }];
  });
}

/** The sources of a command that needs the database too: the error names everything that is missing. */
export function requireSources(config: Config): readonly SourceConfig[] {
  if (config.sources.length > 0) return config.sources;
  const database = config.databaseUrl === undefined ? [DATABASE_MISSING] : [];
  throw new UsageError({
    code: "source_missing",
    message: [
      "No source is configured: set both USAGE_BASE_URL and USAGE_API_KEY.",
      ...database.map(({ message }) => message),
    ].join(" "),
    next: [
      "The key needs organization:read. For several sources set USAGE_SOURCES_FILE. `usage-etl demo` needs neither.",
      ...database.map(({ next }) => next),
    ].join("\n  "),
  });
}

const DATABASE_MISSING = {
  code: "database_missing",
  message: "DATABASE_URL is not set.",
  next: "Set it to a Postgres 15 or later, such as postgres://user:password@host:5432/usage. `usage-etl demo` needs none.",
};

export function requireDatabaseUrl(config: Config): string {
  if (config.databaseUrl !== undefined) return config.databaseUrl.reveal();
  throw new UsageError(DATABASE_MISSING);
}

/** When it changes, stored failures are retried at once. It depends on the key but does not reveal it. */
export function configurationDigest(source: SourceConfig): string {
  const { baseUrl, organizationId, workspaceIds, dataStart } = source;
  return createHash("sha256")
    .update(JSON.stringify([baseUrl, organizationId, workspaceIds, dataStart, source.apiKey.reveal()]))
    .digest("hex")
    .slice(0, 32);
}
