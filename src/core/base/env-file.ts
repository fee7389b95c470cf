import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { distance } from "fastest-levenshtein";
import { UsageError } from "./errors.ts";
import { NO_TEXT, textOf } from "./given-file.ts";
import { isRouteSetting, isSecret, SETTINGS } from "./settings.ts";
import { didYouMean } from "./spelling.ts";
import { type Environment, KNOWN_NAMES, plainName, refuse } from "./variables.ts";

/** Read from the working folder if `USAGE_ENV_FILE` is not set. */
export const ENV_FILE = "usage-etl.env";

/**
 * Adds the env file's settings. The environment wins, as `NAME` or `NAME_FILE`. A systemd credential named like a secret
 * wins over both. Errors: `env_file_unreadable`, `configuration_invalid`.
 */
export function withEnvFile(environment: Environment): Environment {
  const found = envFileOf(environment);
  const merged: Record<string, string | undefined> = { ...environment };
  for (const [name, value] of found === undefined ? [] : readEnvFile(found)) {
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

/** A folder that may be entered but not listed shows no settings. */
function routeSettingsIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter(isRouteSetting);
  } catch {
    return [];
  }
}

/** Throws `env_file_unreadable` for a closed folder, whose files would seem to be missing. */
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

/** If one of these or an env file is set, no other settings are used, such as those of a running demo. */
const CONFIGURING = ["DATABASE_URL", "USAGE_BASE_URL", "USAGE_API_KEY", "USAGE_SOURCES_FILE"];

export function isConfigured(environment: Environment): boolean {
  const names = CONFIGURING.flatMap((name) => [name, `${name}_FILE`]);
  return envFileOf(environment) !== undefined || names.some((name) => !isBlank(environment[name]));
}

export function envFileOf({ USAGE_ENV_FILE: named }: Environment): string | undefined {
  if (!isBlank(named)) return named;
  return existsSync(ENV_FILE) ? ENV_FILE : undefined;
}

function readEnvFile(file: string): ReadonlyMap<string, string> {
  try {
    const text = textOf(readFileSync(file));
    if (text !== undefined) return parseEnvFile(file, text);
  } catch (cause) {
    if (cause instanceof UsageError) throw cause;
    throw unreadable(file, `${(cause as NodeJS.ErrnoException).code}`, cause);
  }
  throw unreadable(file, NO_TEXT);
}

function unreadable(file: string, why: string, cause?: unknown): UsageError {
  return new UsageError({
    code: "env_file_unreadable",
    message: `The env file ${file} cannot be read: ${why}.`,
    next: "Correct USAGE_ENV_FILE or the rights of the file. `usage-etl init` writes one.",
    cause,
  });
}

/** `\s` would include a byte order mark. */
const LINE = /^[ \t]*(?:export[ \t]+)?([A-Z_][A-Z0-9_]*)[ \t]*=(?:[ \t]+#(?:[ \t].*)?|[ \t]*(.*?)[ \t]*)$/;
const QUOTED = /^(?:'([^']*)'|"([^"\\]*)")(?:[ \t]+#.*)?$/;

/**
 * Reads lines as Node does, and refuses lines that set nothing, since their setting would be lost silently. No problem
 * repeats a part of a line, which may be a secret. Error: `configuration_invalid`.
 */
function parseEnvFile(file: string, text: string): ReadonlyMap<string, string> {
  const problems: string[] = [];
  const values = new Map<string, string>();
  const lineOf = new Map<string, number>();
  for (const [at, line] of text.split(/\r\n|\n|\r/).entries()) {
    const refuseLine = (why: string) => void problems.push(`${file} line ${at + 1} ${why}`);
    if (/^\s*(#.*)?$/.test(line)) continue;
    const [, name, given = ""] = LINE.exec(line) ?? [];
    if (name === undefined) {
      refuseLine(
        `sets nothing: write NAME=value, with a name of upper-case letters, digits and _${hint(line)}`,
      );
      continue;
    }
    const value = valueIn(given);
    if (value === undefined) {
      refuseLine(`sets ${known(name)}, but its value would be cut: write it within '...' on one line`);
      continue;
    }
    if (name === "USAGE_ENV_FILE") refuseLine("sets USAGE_ENV_FILE, which counts in the environment only");
    const before = values.get(name);
    if (before !== undefined && before !== value)
      refuseLine(`sets ${known(name)} to another value than line ${lineOf.get(name)}; keep one`);
    else if (!KNOWN_NAMES.includes(name) && isAlmost(name)) refuseLine(`is no setting${hint(name)}`);
    values.set(name, value);
    lineOf.set(name, at + 1);
  }
  refuse(problems);
  return values;
}

/** Undefined if Node would drop a part of the value, or continue it in the next line. */
function valueIn(given: string): string | undefined {
  const quoted = QUOTED.exec(given);
  if (quoted !== null) return quoted[1] ?? quoted[2];
  const [value = ""] = given.split(/[ \t]+#/, 1);
  return /^['"`]|#/.test(value) ? undefined : value;
}

/** Hides unknown names, because a stray line of a secret may look like a name. */
function known(name: string): string {
  return KNOWN_NAMES.includes(name) ? name : "a variable";
}

function isAlmost(name: string): boolean {
  return /^(DATABASE|REDIS|HTTP)_/.test(name) && KNOWN_NAMES.some((one) => distance(one, name) <= 2);
}

function hint(line: string): string {
  return didYouMean(plainName(/^\W*(?:export\s+)?([^=:\s]*)/.exec(line)?.[1] ?? ""), KNOWN_NAMES);
}

/**
 * Node, systemd, docker compose and a shell read the result alike; `docker run` would keep the quotes. Values must have no `'`
 * and no line end.
 */
export function toEnvFile(values: Readonly<Record<string, string>>, head: string): string {
  const lines = Object.entries(values).map(([name, value]) =>
    /^[\w./:@%+,=-]*$/.test(value) ? `${name}=${value}` : `${name}='${value}'`,
  );
  return `${head}${lines.join("\n")}\n`;
}

export function fitsEnvFile(value: string): boolean {
  return !/['\r\n\0]/.test(value);
}

function isBlank(value: string | undefined): boolean {
  return value === undefined || value.trim() === "";
}
