import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { UsageError } from "../errors.ts";
import { isRouteSetting, isSecret, SETTINGS } from "./settings.ts";
import type { Environment } from "./variables.ts";

/** Read from the working folder if `USAGE_ENV_FILE` is not set. */
export const ENV_FILE = "usage-etl.env";

/**
 * Adds the env file's settings. The environment wins, whether as `NAME` or `NAME_FILE`; a systemd credential named like a
 * secret wins over both. Error: `env_file_unreadable`.
 */
export function withEnvFile(environment: Environment): Environment {
  const found = envFileOf(environment);
  const merged: Record<string, string | undefined> = { ...environment };
  for (const [name, value] of Object.entries(found === undefined ? {} : readEnvFile(found))) {
    const setting = name.replace(/_FILE$/, "");
    const twins = isSecret(setting) || isRouteSetting(setting) ? [setting, `${setting}_FILE`] : [name];
    const isSetting = name.startsWith("USAGE_") || name in SETTINGS || isSecret(setting);
    if (isSetting && twins.every((twin) => isBlank(environment[twin]))) merged[name] = value;
  }
  const { CREDENTIALS_DIRECTORY: folder } = environment;
  if (folder === undefined) return merged;
  for (const name of [...Object.keys(SETTINGS).filter(isSecret), ...routeSettingsIn(folder)]) {
    const credential = join(folder, name);
    if (!isThere(credential)) continue;
    delete merged[name];
    merged[`${name}_FILE`] = credential;
  }
  return merged;
}

/** A folder that may be entered but not listed shows none. */
function routeSettingsIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter(isRouteSetting);
  } catch {
    return [];
  }
}

/** Error: `env_file_unreadable` for a closed folder, whose files would seem to be missing. */
function isThere(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (cause) {
    throw new UsageError({
      code: "env_file_unreadable",
      message: `The folder of ${path} cannot be read: ${(cause as NodeJS.ErrnoException).code}.`,
      next: "Give the user of this process the right to enter CREDENTIALS_DIRECTORY.",
      cause,
    });
  }
}

/** With one of these, or an env file, nothing else may stand in for a setting. */
const CONFIGURING = ["DATABASE_URL", "USAGE_BASE_URL", "USAGE_API_KEY", "USAGE_SOURCES_FILE"];

/** Includes the env file and credentials. */
export function isConfigured(environment: Environment): boolean {
  const names = CONFIGURING.flatMap((name) => [name, `${name}_FILE`]);
  return envFileOf(environment) !== undefined || names.some((name) => !isBlank(environment[name]));
}

/** Undefined if there is none. */
export function envFileOf({ USAGE_ENV_FILE: named }: Environment): string | undefined {
  if (!isBlank(named)) return named;
  return existsSync(ENV_FILE) ? ENV_FILE : undefined;
}

function readEnvFile(file: string): Readonly<Record<string, string | undefined>> {
  try {
    return parseEnv(readFileSync(file, "utf8"));
  } catch (cause) {
    throw new UsageError({
      code: "env_file_unreadable",
      message: `The env file ${file} cannot be read: ${(cause as NodeJS.ErrnoException).code}.`,
      next: "Correct USAGE_ENV_FILE or the rights of the file. `usage-etl init` writes one.",
      cause,
    });
  }
}

/** Node, systemd, Docker and a shell read this text alike. Values hold neither `'` nor line ends. */
export function toEnvFile(values: Readonly<Record<string, string>>, head: string): string {
  const lines = Object.entries(values).map(([name, value]) =>
    /^[\w./:@%+,=-]*$/.test(value) ? `${name}=${value}` : `${name}='${value}'`,
  );
  return `${head}${lines.join("\n")}\n`;
}

/** Returns whether `toEnvFile` can write the value. */
export function fitsEnvFile(value: string): boolean {
  return !/['\r\n\0]/.test(value);
}

function isBlank(value: string | undefined): boolean {
  return value === undefined || value.trim() === "";
}
