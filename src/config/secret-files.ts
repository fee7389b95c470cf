import type { Config } from "./config.ts";
import type { Secret } from "./secret.ts";

/** The secrets that come from files, by the name of what names the file. */
export function secretFilesOf(config: Config): ReadonlyMap<string, Secret> {
  const { databaseUrl, databaseReadUrl, redisSecrets, sources } = config;
  const all: [name: string, secret: Secret | undefined][] = [
    ["DATABASE_URL_FILE", databaseUrl],
    ["DATABASE_READ_URL_FILE", databaseReadUrl],
    ...Object.entries(redisSecrets).map(([name, secret]): [string, Secret | undefined] => [
      `${name}_FILE`,
      secret,
    ]),
    ...sources.flatMap(({ slug, apiKey, bearerToken }): [string, Secret | undefined][] => [
      [`API key file of source ${slug}`, apiKey],
      [`bearer token file of source ${slug}`, bearerToken],
    ]),
  ];
  return new Map(all.flatMap(([name, secret]) => (secret?.isFromFile() ? [[name, secret]] : [])));
}
