import type { z } from "zod";
import { UsageError } from "./errors.ts";
import { Secret, secretFromFile } from "./secret.ts";
import { isRouteSetting, isSecret, SETTINGS, settingOf } from "./settings.ts";
import { didYouMean } from "./spelling.ts";
import "./validation.ts";

export type Environment = Readonly<Record<string, string | undefined>>;
export type SettingName = keyof typeof SETTINGS;
export type Values = { readonly [N in SettingName]: z.output<(typeof SETTINGS)[N]["schema"]> };

/** A setting with a problem is undefined, and `problems` names it. */
export function readVariables(environment: Environment, problems: string[]): Values {
  const names = Object.keys(SETTINGS) as SettingName[];
  return Object.fromEntries(names.map((name) => [name, readVariable(environment, name, problems)])) as Values;
}

export function readSetting<N extends SettingName>(environment: Environment, name: N): Values[N] {
  const problems: string[] = [];
  const value = readVariable(environment, name, problems);
  refuse(problems);
  return value as Values[N];
}

/** A secret may also be in the file of `NAME_FILE`. A blank value is unset. */
export function readVariable(environment: Environment, name: string, problems: string[]): unknown {
  const { schema, secret } = settingOf(name);
  const [text, file] = [environment[name], secret ? environment[`${name}_FILE`] : undefined].map(
    (value) => value?.trim() || undefined,
  );
  if (text !== undefined && file !== undefined) {
    problems.push(`${name} and ${name}_FILE are both set; keep one`);
  }
  const problemsOf = ({ error }: z.ZodSafeParseResult<unknown>) =>
    error?.issues.map(({ message, path: [index] }) =>
      typeof index === "number" ? `${name}: entry ${index + 1} ${message}` : `${name} ${message}`,
    ) ?? [];
  if (file !== undefined) {
    return secretFromFile(file, `${name}_FILE`, problems, (content) => problemsOf(schema.safeParse(content)));
  }
  const parsed = schema.safeParse(text);
  problems.push(...problemsOf(parsed));
  return parsed.data;
}

export function readRouteSecrets(environment: Environment, problems: string[]): Map<string, Secret> {
  const names = new Set(Object.keys(environment).map((name) => name.replace(/_FILE$/, "")));
  const found = [...names].filter(isRouteSetting).flatMap((name): [string, Secret][] => {
    const secret = readVariable(environment, name, problems);
    return secret instanceof Secret ? [[name, secret]] : [];
  });
  return new Map(found);
}

export const KNOWN_NAMES: readonly string[] = Object.keys(SETTINGS).flatMap((name) =>
  isSecret(name) ? [name, `${name}_FILE`] : [name],
);

export function unknownVariables(environment: Environment): string[] {
  return Object.keys(environment).flatMap((name) => {
    if (KNOWN_NAMES.includes(name) || isRouteSetting(name.replace(/_FILE$/, ""))) return [];
    const plain = plainName(name);
    if (!name.startsWith("USAGE_")) {
      const isMeant = plain.startsWith("USAGE_") && KNOWN_NAMES.includes(plain);
      return isMeant ? [`${plain} is set under a name with lower-case letters or invisible characters`] : [];
    }
    return [`${name} is not a setting${didYouMean(name, KNOWN_NAMES)}`];
  });
}

export function plainName(name: string): string {
  return name.replace(/\W/g, "").toUpperCase();
}

export function refuse(problems: readonly string[]): void {
  if (problems.length === 0) return;
  throw new UsageError({
    code: "configuration_invalid",
    message: `The configuration has ${problems.length} problem${problems.length > 1 ? "s" : ""}:\n  ${problems.join("\n  ")}`,
    next: "Correct the settings. `usage-etl config` shows the settings in use.",
  });
}
