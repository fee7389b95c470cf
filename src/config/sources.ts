import { createHash } from "node:crypto";
import { z } from "zod";
import { Secret } from "./secret.ts";
import { sourceSchema } from "./settings.ts";
import { bearerToken } from "./value-schemas.ts";
import { readSecretFile, secretFromFile, type Values } from "./variables.ts";
import "../validation.ts";

type SourceFields = Omit<
  z.output<typeof sourceSchema>,
  "apiKey" | "apiKeyFile" | "bearerToken" | "bearerTokenFile"
>;

export interface SourceConfig extends Readonly<SourceFields> {
  readonly apiKey: Secret;
  readonly bearerToken?: Secret | undefined;
}

/** The source of the environment, named `default`, or those of `USAGE_SOURCES_FILE`. */
export function readSources(values: Values, problems: string[]): SourceConfig[] {
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
      answerLimit: values.USAGE_ANSWER_LIMIT,
      controlPlaneUrl: values.USAGE_CONTROL_PLANE_URL,
      deploymentUrl: values.USAGE_DEPLOYMENT_URL,
      workspaceId: values.USAGE_WORKSPACE_ID,
      bearerToken: values.USAGE_BEARER_TOKEN,
      probeProject: values.USAGE_PROBE_PROJECT,
      probeUser: values.USAGE_PROBE_USER,
      probeShortKey: values.USAGE_PROBE_SHORT_KEY,
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
    json = JSON.parse(text);
  } catch {
    // The parser's message repeats parts of the file, which may hold a key.
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
  return parsed.data.flatMap(({ apiKey, apiKeyFile, bearerToken: token, bearerTokenFile, ...source }) => {
    const at = `${file}: source ${source.slug}`;
    if (source.workspaceId !== undefined && source.controlPlaneUrl === undefined) {
      problems.push(
        `${at} has a workspaceId, which is for its controlPlaneUrl; those to load are workspaceIds`,
      );
    }
    if (token !== undefined && bearerTokenFile !== undefined) {
      problems.push(`${at} has bearerToken and bearerTokenFile; keep one`);
    }
    const bearer =
      bearerTokenFile === undefined
        ? token === undefined
          ? undefined
          : new Secret(token)
        : bearerFrom(bearerTokenFile, `${file}: bearerTokenFile of ${source.slug}`, problems);
    if ((apiKey === undefined) === (apiKeyFile === undefined)) {
      problems.push(`${at} needs apiKey or apiKeyFile, one of them`);
      return [];
    }
    const key =
      apiKey === undefined
        ? secretFromFile(apiKeyFile as string, `${file}: apiKeyFile of ${source.slug}`, { problems })
        : new Secret(apiKey);
    return key === undefined ? [] : [{ ...source, apiKey: key, bearerToken: bearer }];
  });
}

function bearerFrom(path: string, where: string, problems: string[]): Secret | undefined {
  return secretFromFile(path, where, {
    problems,
    addProblems: (text, found) => {
      const { error } = bearerToken.safeParse(text);
      found.push(...(error?.issues.map(({ message }) => `${where} ${message}`) ?? []));
    },
  });
}

/** When it changes, stored failures are retried at once. It depends on the key but does not reveal it. */
export function configurationDigest(source: SourceConfig): string {
  const { baseUrl, organizationId, workspaceIds, dataStart, answerLimit } = source;
  const key = source.apiKey.reveal();
  // The limit at the end and only if it is set, so that a release without it has the same digest.
  const limit = answerLimit === undefined ? [] : [answerLimit];
  return createHash("sha256")
    .update(JSON.stringify([baseUrl, organizationId, workspaceIds, dataStart, key, ...limit]))
    .digest("hex")
    .slice(0, 32);
}

/** By it another key is told, without revealing any. */
export function keyDigest({ slug, apiKey }: Pick<SourceConfig, "slug" | "apiKey">): string {
  return createHash("sha256")
    .update(JSON.stringify(["key", slug, apiKey.reveal()]))
    .digest("hex")
    .slice(0, 32);
}
